//! What the names of a script stand for: models, losses, optimizers, loops that train.

mod accumulation;
mod assignments;
mod data;
mod evaluation;
mod gradients;
mod graph;
mod imports;
mod training;

use std::collections::HashSet;

use ruff_python_ast::{AnyNodeRef, Expr, ExprCall, ModModule, StmtFunctionDef};
use ruff_text_size::Ranged;

pub(super) use accumulation::is_accumulation_count;
pub(super) use assignments::{Assignment, How, Often};
pub(super) use gradients::Gradients;
pub(super) use graph::Graph;
pub(super) use training::{Backward, OnOptimizer};

use self::imports::Imports;
use super::python::{called, last, path, receiver};
use super::tree::{Id, Tree};

/// A script with what was made out in it once for all rules.
#[derive(Debug)]
pub(super) struct Script<'a> {
    pub(super) tree: Tree<'a>,
    pub(super) calls: Vec<Call<'a>>,
    pub(super) functions: Vec<(Id, &'a StmtFunctionDef)>,
    pub(super) assignments: Vec<Assignment<'a>>,
    /// Where gradients are computed.
    pub(super) backwards: Vec<Backward<'a>>,
    /// `optimizer.step()`.
    pub(super) steps: Vec<OnOptimizer>,
    /// `zero_grad()`, of an optimizer or a model.
    pub(super) zeroings: Vec<OnOptimizer>,
    /// Dotted names of models, by what is done with them.
    models: HashSet<String>,
    /// Those of loss functions.
    criteria: HashSet<String>,
    imports: Imports,
    text: &'a str,
}

/// A call, and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) id: Id,
    pub(super) node: &'a ExprCall,
}

impl<'a> Call<'a> {
    /// `step` of `self.optimizer.step()`.
    pub(super) fn name(&self) -> &'a str {
        called(self.node)
    }

    /// `self.optimizer` of it.
    pub(super) fn on(&self) -> Option<&'a Expr> {
        receiver(self.node)
    }

    /// The dotted name of what it is called on.
    pub(super) fn on_path(&self) -> Option<String> {
        self.on().and_then(path)
    }

    /// The argument at that place.
    pub(super) fn argument(&self, place: usize) -> Option<&'a Expr> {
        self.node.arguments.find_positional(place)
    }
}

impl<'a> Script<'a> {
    pub(super) fn of(module: &'a ModModule, text: &'a str) -> Self {
        let tree = Tree::of(module);
        let imports = Imports::of(&tree);
        let mut calls = Vec::new();
        let mut functions = Vec::new();
        for id in tree.ids() {
            match tree.node(id) {
                AnyNodeRef::ExprCall(node) => calls.push(Call { id, node }),
                AnyNodeRef::StmtFunctionDef(node) => functions.push((id, node)),
                _ => {}
            }
        }
        let mut script = Self {
            assignments: assignments::all(&tree),
            tree,
            calls,
            functions,
            backwards: Vec::new(),
            steps: Vec::new(),
            zeroings: Vec::new(),
            models: HashSet::new(),
            criteria: HashSet::new(),
            imports,
            text,
        };
        script.backwards = training::backwards(&script);
        let optimizers = training::optimizers(&script);
        script.steps = training::steps(&script, &optimizers);
        script.zeroings = training::zeroings(&script);
        script.criteria = graph::criteria(&script);
        script.models = graph::models(&script, &optimizers);
        script
    }

    /// Whether it has to do with PyTorch at all.
    pub(super) fn trains_with_torch(&self) -> bool {
        const LIBRARIES: &[&str] = &[
            "torch",
            "accelerate",
            "transformers",
            "lightning",
            "pytorch_lightning",
            "timm",
            "fastai",
            "torchvision",
            "deepspeed",
        ];
        LIBRARIES.iter().any(|library| self.uses(library))
    }

    /// Whether it imports from that package.
    pub(super) fn uses(&self, package: &str) -> bool {
        self.imports.has(package)
    }

    /// The full name of a dotted name: `torch.nn.functional.relu` of `F.relu`.
    pub(super) fn full(&self, expr: &Expr) -> Option<String> {
        path(expr).map(|path| self.imports.full(&path))
    }

    /// The text of a node, on one line.
    pub(super) fn words(&self, node: &impl Ranged) -> String {
        crate::error::shorten(&self.text[node.range()], 60)
    }

    /// The calls within a node.
    pub(super) fn calls_in(&self, id: Id) -> impl Iterator<Item = Call<'a>> + '_ {
        let within = self.tree.within(id);
        let start = self.calls.partition_point(|call| call.id < within.start);
        self.calls[start..].iter().take_while(move |call| call.id < within.end).copied()
    }

    /// The dotted names within an expression, and what they begin with: of `a.b.c + d` these are `a`,
    /// `a.b`, `a.b.c` and `d`.
    pub(super) fn names_in(&self, expr: &Expr) -> HashSet<String> {
        let mut names = HashSet::new();
        for id in self.tree.within(self.tree.id(expr)) {
            let path = match self.tree.node(id) {
                AnyNodeRef::ExprName(name) => Some(name.id.to_string()),
                AnyNodeRef::ExprAttribute(attribute) => {
                    path(&attribute.value).map(|value| format!("{value}.{}", attribute.attr))
                }
                _ => None,
            };
            names.extend(path.filter(|it| it != "self"));
        }
        names
    }

    /// Whether a name, or a part of one, stands anywhere in the script's code.
    pub(super) fn mentions(&self, is: impl Fn(&str) -> bool) -> bool {
        self.tree.ids().any(|id| match self.tree.node(id) {
            AnyNodeRef::ExprName(name) => is(&name.id),
            AnyNodeRef::ExprAttribute(attribute) => is(&attribute.attr),
            AnyNodeRef::Keyword(keyword) => keyword.arg.as_ref().is_some_and(|it| is(it)),
            AnyNodeRef::Alias(alias) => is(last(&alias.name)),
            _ => false,
        })
    }

    /// The function it stands in, if it is one with a name.
    pub(super) fn named_function(&self, id: Id) -> Option<(Id, &'a StmtFunctionDef)> {
        self.tree.above(id).find_map(|above| match self.tree.node(above) {
            AnyNodeRef::StmtFunctionDef(function) => Some((above, function)),
            _ => None,
        })
    }

    /// The statement that an expression belongs to.
    pub(super) fn statement(&self, id: Id) -> Id {
        self.tree.above(id).find(|&above| self.tree.node(above).is_statement()).unwrap_or(id)
    }
}
