use std::iter::successors;
use std::ops::Range;

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, TraversalSignal};
use ruff_python_ast::{AnyNodeRef, HasNodeIndex, ModModule, NodeIndex};

/// A node's number, in the order of the text: what stands in it has the numbers that follow.
pub(super) type Id = usize;

/// A syntax tree that can be walked upwards, which the parser's cannot.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    nodes: Vec<Entry<'a>>,
}

#[derive(Debug)]
struct Entry<'a> {
    node: AnyNodeRef<'a>,
    parent: Option<Id>,
    /// The first number that is not within it.
    end: Id,
}

/// The module itself.
pub(super) const ROOT: Id = 0;

impl<'a> Tree<'a> {
    pub(super) fn of(module: &'a ModModule) -> Self {
        let mut builder = Builder { nodes: Vec::new(), open: Vec::new() };
        builder.enter_node(module.into());
        for statement in &module.body {
            builder.visit_stmt(statement);
        }
        builder.leave_node(module.into());
        Self { nodes: builder.nodes }
    }

    pub(super) fn node(&self, id: Id) -> AnyNodeRef<'a> {
        self.nodes[id].node
    }

    /// The number of a node of this tree.
    pub(super) fn id(&self, node: &impl HasNodeIndex) -> Id {
        node.node_index().load().as_u32().map_or(ROOT, |index| index as Id)
    }

    pub(super) fn ids(&self) -> Range<Id> {
        ROOT..self.nodes.len()
    }

    /// It and all that stands in it.
    pub(super) fn within(&self, id: Id) -> Range<Id> {
        id..self.nodes[id].end
    }

    pub(super) fn parent(&self, id: Id) -> Option<Id> {
        self.nodes[id].parent
    }

    /// What it stands in, the nearest first, without itself.
    pub(super) fn above(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        successors(self.parent(id), |&id| self.parent(id))
    }

    /// The function it stands in, or the module.
    pub(super) fn function(&self, id: Id) -> Id {
        self.above(id)
            .find(|&above| {
                matches!(
                    self.node(above),
                    AnyNodeRef::StmtFunctionDef(_) | AnyNodeRef::ExprLambda(_)
                )
            })
            .unwrap_or(ROOT)
    }

    /// The class whose method `function` is.
    pub(super) fn class(&self, function: Id) -> Option<&'a ruff_python_ast::StmtClassDef> {
        match self.node(self.parent(function)?) {
            AnyNodeRef::StmtClassDef(class) => Some(class),
            _ => None,
        }
    }

    /// The loops whose bodies it stands in, within its function, the innermost first.
    pub(super) fn loops(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let function = self.function(id);
        let mut below = id;
        self.above(id).take_while(move |&above| above != function).filter(move |&above| {
            let came_from = std::mem::replace(&mut below, above);
            self.is_in_body(above, came_from)
        })
    }

    /// Whether `child` is a statement that the loop `id` repeats.
    fn is_in_body(&self, id: Id, child: Id) -> bool {
        let body = match self.node(id) {
            AnyNodeRef::StmtFor(it) => &it.body,
            AnyNodeRef::StmtWhile(it) => &it.body,
            _ => return false,
        };
        body.iter().any(|statement| self.id(statement) == child)
    }

    /// The innermost loop.
    pub(super) fn innermost_loop(&self, id: Id) -> Option<Id> {
        self.loops(id).next()
    }

    /// Whether at most one of the two is run, being in different branches of one `if`.
    pub(super) fn exclude_each_other(&self, one: Id, other: Id) -> bool {
        let path = |id: Id| {
            let mut path: Vec<_> = successors(Some(id), |&id| self.parent(id)).collect();
            path.reverse();
            path
        };
        let (one, other) = (path(one), path(other));
        let shared = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        let Some(&fork) = shared.checked_sub(1).and_then(|last| one.get(last)) else {
            return false;
        };
        let clause = |path: &[Id]| {
            path.get(shared)
                .copied()
                .filter(|&id| matches!(self.node(id), AnyNodeRef::ElifElseClause(_)))
        };
        matches!(self.node(fork), AnyNodeRef::StmtIf(_)) && clause(&one) != clause(&other)
    }

    /// The `if` statements between it and `top`, which it stands in.
    pub(super) fn conditions(&self, id: Id, top: Id) -> impl Iterator<Item = Id> + '_ {
        self.above(id)
            .take_while(move |&above| above != top)
            .filter(|&above| matches!(self.node(above), AnyNodeRef::StmtIf(_)))
    }
}

struct Builder<'a> {
    nodes: Vec<Entry<'a>>,
    open: Vec<Id>,
}

impl<'a> SourceOrderVisitor<'a> for Builder<'a> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        let id = self.nodes.len();
        if let Ok(index) = u32::try_from(id) {
            node.node_index().set(NodeIndex::from(index));
        }
        self.nodes.push(Entry { node, parent: self.open.last().copied(), end: id });
        self.open.push(id);
        TraversalSignal::Traverse
    }

    fn leave_node(&mut self, _: AnyNodeRef<'a>) {
        if let Some(id) = self.open.pop() {
            self.nodes[id].end = self.nodes.len();
        }
    }
}
