use ruff_python_ast::{AnyNodeRef, Expr, StmtFunctionDef};

use super::Script;
use crate::lint::python::{called, is_false, is_true, last, path};
use crate::lint::tree::{Id, ROOT};

/// Whether PyTorch records a graph at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lint) enum Gradients {
    On,
    Off,
    /// It depends on a value, or on something that cannot be seen.
    Unsure,
}

/// How many callers above one another are looked at.
const CALLERS: usize = 4;

impl Script<'_> {
    /// Whether a graph is recorded there, as far as `no_grad`, `inference_mode` and
    /// `set_grad_enabled` tell, around it or around all calls of its function.
    pub(in crate::lint) fn gradients(&self, id: Id) -> Gradients {
        self.gradients_through(id, CALLERS)
    }

    /// As [`Self::gradients`], by what stands around it in its own function alone.
    pub(in crate::lint) fn gradients_in_function(&self, id: Id) -> Gradients {
        self.gradients_through(id, 0)
    }

    fn gradients_through(&self, id: Id, callers: usize) -> Gradients {
        let mut below = id;
        for above in self.tree.above(id) {
            match self.tree.node(above) {
                AnyNodeRef::StmtWith(with) => {
                    let is_in_body = with.body.iter().any(|it| self.tree.id(it) == below);
                    let contexts = with.items.iter().rev().map(|it| &it.context_expr);
                    let known = contexts.filter_map(|it| self.of_context(it)).next();
                    if let (true, Some(gradients)) = (is_in_body, known) {
                        return gradients;
                    }
                }
                AnyNodeRef::StmtFunctionDef(function) => {
                    let decorators = function.decorator_list.iter().map(|it| &it.expression);
                    if let Some(gradients) = decorators.filter_map(|it| self.of_context(it)).next()
                    {
                        return gradients;
                    }
                    if self.is_called_by_framework(function) {
                        return Gradients::Unsure;
                    }
                    return self
                        .switched(above, id)
                        .unwrap_or_else(|| self.of_callers(above, function, callers));
                }
                _ => {}
            }
            below = above;
        }
        self.switched(ROOT, id).unwrap_or(Gradients::On)
    }

    /// `torch.set_grad_enabled(False)` as a statement of the same function.
    fn switched(&self, function: Id, before: Id) -> Option<Gradients> {
        let calls = self.calls.iter().rev().filter(|call| {
            call.id < before
                && call.name() == "set_grad_enabled"
                && self.tree.function(call.id) == function
        });
        let mut statements =
            calls.filter_map(|call| match self.tree.node(self.tree.parent(call.id)?) {
                AnyNodeRef::StmtExpr(statement) => Some(&statement.value),
                _ => None,
            });
        self.of_context(statements.next()?)
    }

    /// Off where each call of the function, of which there is one, is where they are. A method is
    /// known by `self` alone, since `model.train()` is not the `train` of a trainer.
    fn of_callers(&self, id: Id, function: &StmtFunctionDef, callers: usize) -> Gradients {
        if callers == 0 {
            return Gradients::On;
        }
        let is_method = self.tree.class(id).is_some();
        let mut calls = self
            .calls
            .iter()
            .filter(|call| {
                *function.name == *call.name()
                    && match call.on() {
                        None => !is_method,
                        Some(on) => is_method && path(on).as_deref() == Some("self"),
                    }
            })
            .peekable();
        if calls.peek().is_none() {
            return Gradients::On;
        }
        let found: Vec<_> =
            calls.map(|call| self.gradients_through(call.id, callers - 1)).collect();
        match found.iter().all(|it| *it == Gradients::Off) {
            true => Gradients::Off,
            false if found.contains(&Gradients::On) => Gradients::On,
            false => Gradients::Unsure,
        }
    }

    /// What a context manager or decorator does to the recording of graphs, if anything.
    fn of_context(&self, expr: &Expr) -> Option<Gradients> {
        let name = match expr {
            Expr::Call(call) => called(call).to_owned(),
            other => path(other).map(|it| last(&it).to_owned()).unwrap_or_default(),
        };
        let argument = match expr {
            Expr::Call(call) => call.arguments.find_argument_value("mode", 0),
            _ => None,
        };
        match name.as_str() {
            "no_grad" => return Some(Gradients::Off),
            "inference_mode" => {
                return Some(match argument {
                    None => Gradients::Off,
                    Some(mode) if is_true(mode) => Gradients::Off,
                    Some(mode) if is_false(mode) => Gradients::On,
                    Some(_) => Gradients::Unsure,
                });
            }
            "enable_grad" => return Some(Gradients::On),
            "set_grad_enabled" => {
                return Some(match argument {
                    Some(mode) if is_true(mode) => Gradients::On,
                    Some(mode) if is_false(mode) => Gradients::Off,
                    _ => Gradients::Unsure,
                });
            }
            _ => {}
        }
        let unsure = match expr {
            // `torch.no_grad() if … else nullcontext()`, or a stack of contexts.
            Expr::If(_) | Expr::BoolOp(_) => self.switches_within(expr),
            Expr::Name(_) | Expr::Attribute(_) => path(expr).is_some_and(|path| {
                self.assignments.iter().any(|it| it.name == path && self.switches_within(it.value))
            }),
            Expr::Call(_) => {
                let mut definitions = self.functions.iter().filter(|(_, it)| it.name == name);
                definitions.any(|(id, _)| self.tree.within(*id).any(|id| self.is_switch(id)))
                    || ["no_grad", "inference", "eval"].iter().any(|it| name.contains(it))
            }
            _ => false,
        };
        unsure.then_some(Gradients::Unsure)
    }

    fn switches_within(&self, expr: &Expr) -> bool {
        let id = self.tree.id(expr);
        // An expression that is not of the tree has no number.
        id != ROOT && self.tree.within(id).any(|id| self.is_switch(id))
    }

    fn is_switch(&self, id: Id) -> bool {
        let name = match self.tree.node(id) {
            AnyNodeRef::ExprName(name) => name.id.as_str(),
            AnyNodeRef::ExprAttribute(attribute) => attribute.attr.as_str(),
            _ => return false,
        };
        matches!(name, "no_grad" | "inference_mode" | "set_grad_enabled")
    }
}
