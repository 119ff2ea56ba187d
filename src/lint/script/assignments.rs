use ruff_python_ast::{AnyNodeRef, Expr, Operator};

use super::Script;
use crate::lint::python::base;
use crate::lint::tree::{Id, Tree};

/// A name that is given something.
#[derive(Debug)]
pub(in crate::lint) struct Assignment<'a> {
    /// The statement.
    pub(in crate::lint) id: Id,
    /// The function it stands in.
    pub(in crate::lint) function: Id,
    /// The dotted name; of `x[0]` it is `x`.
    pub(in crate::lint) name: String,
    pub(in crate::lint) target: &'a Expr,
    pub(in crate::lint) value: &'a Expr,
    pub(in crate::lint) how: How,
}

/// How a name is given something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lint) enum How {
    /// `x = value`.
    Whole,
    /// `x, y = value`, or `x[0] = value`.
    Part,
    /// `x += value`.
    Augmented(Operator),
    /// `for x in value`.
    Item,
    /// `with value as x`.
    Context,
}

/// In how many iterations of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::lint) enum Often {
    EachTime,
    /// Under a condition.
    Sometimes,
}

/// All of a script, in the order of the text.
pub(super) fn all<'a>(tree: &Tree<'a>) -> Vec<Assignment<'a>> {
    let mut found = Vec::new();
    for id in tree.ids() {
        let mut add = |target, value, how| spread(tree, &mut found, (id, target, value, how));
        match tree.node(id) {
            AnyNodeRef::StmtAssign(it) => {
                for target in &it.targets {
                    add(target, &*it.value, How::Whole);
                }
            }
            AnyNodeRef::StmtAnnAssign(it) => {
                if let Some(value) = &it.value {
                    add(&*it.target, &**value, How::Whole);
                }
            }
            AnyNodeRef::StmtAugAssign(it) => add(&*it.target, &*it.value, How::Augmented(it.op)),
            AnyNodeRef::ExprNamed(it) => add(&*it.target, &*it.value, How::Whole),
            AnyNodeRef::StmtFor(it) => add(&*it.target, &*it.iter, How::Item),
            AnyNodeRef::WithItem(it) => {
                if let Some(target) = &it.optional_vars {
                    add(&**target, &it.context_expr, How::Context);
                }
            }
            _ => {}
        }
    }
    found
}

/// Takes `a, b = x` apart, by pairs where there are any.
fn spread<'a>(
    tree: &Tree<'a>,
    found: &mut Vec<Assignment<'a>>,
    (id, target, value, how): (Id, &'a Expr, &'a Expr, How),
) {
    let elements = match target {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        _ => {
            let whole = !matches!(target, Expr::Subscript(_) | Expr::Starred(_));
            let how = if whole || how != How::Whole { how } else { How::Part };
            let function = tree.function(id);
            if let Some(name) = base(target) {
                found.push(Assignment { id, function, name, target, value, how });
            }
            return;
        }
    };
    let values = match value {
        Expr::Tuple(tuple) if tuple.elts.len() == elements.len() => Some(&tuple.elts),
        _ => None,
    };
    for (index, element) in elements.iter().enumerate() {
        match values {
            Some(values) => spread(tree, found, (id, element, &values[index], how)),
            None if how == How::Whole => spread(tree, found, (id, element, value, How::Part)),
            None => spread(tree, found, (id, element, value, how)),
        }
    }
}

impl<'a> Script<'a> {
    /// What a name was given last before a place in its function, if that is to be seen there.
    pub(in crate::lint) fn last_assignment(&self, name: &str, at: Id) -> Option<&Assignment<'a>> {
        let function = self.tree.function(at);
        let statement = self.statement(at);
        self.assignments.iter().rev().find(|it| {
            it.id < statement
                && it.function == function
                && it.name == name
                && !self.tree.exclude_each_other(it.id, at)
        })
    }

    /// What a name was given last before a place, or else on the module's level.
    pub(in crate::lint) fn known_as(&self, name: &str, at: Id) -> Option<&Assignment<'a>> {
        self.last_assignment(name, at).or_else(|| {
            self.assignments
                .iter()
                .find(|it| it.function == crate::lint::tree::ROOT && it.name == name)
        })
    }

    /// How often a loop begins a name anew in its body, if it does.
    pub(in crate::lint) fn begun_anew(&self, name: &str, in_loop: Id) -> Option<Often> {
        let anew = self.assignments.iter().filter(|it| {
            it.name == name
                && matches!(it.how, How::Whole | How::Item)
                && (it.id == in_loop || self.tree.innermost_loop(it.id) == Some(in_loop))
                && !self.names_in(it.value).contains(name)
        });
        anew.map(|it| match self.tree.conditions(it.id, in_loop).next() {
            None => Often::EachTime,
            Some(_) => Often::Sometimes,
        })
        .min()
    }

    /// The names that come into any of `names` in a function, these included.
    pub(in crate::lint) fn sources(
        &self,
        function: Id,
        mut names: std::collections::HashSet<String>,
    ) -> std::collections::HashSet<String> {
        loop {
            let before = names.len();
            for it in self.assignments.iter().filter(|it| it.function == function) {
                if names.contains(&it.name) {
                    names.extend(self.names_in(it.value));
                }
            }
            if names.len() == before {
                return names;
            }
        }
    }
}
