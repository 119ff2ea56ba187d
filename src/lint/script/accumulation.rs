use std::collections::HashSet;

use ruff_python_ast::{AnyNodeRef, Expr, Operator};

use super::Script;
use crate::lint::python::last;
use crate::lint::tree::Id;

/// Whether a name is one that micro-batches in a step are counted by.
pub(in crate::lint) fn is_accumulation_count(name: &str) -> bool {
    let name = last(name).to_lowercase();
    let counts = ["step", "iter", "freq", "count", "batch", "grad", "num", "every"];
    (name.contains("accum") && counts.iter().any(|it| name.contains(it)) && !name.contains("loss"))
        || matches!(name.as_str(), "accum" | "accumulation" | "accumulate" | "update_freq")
}

impl Script<'_> {
    /// Whether a place is reached only every so many iterations of a loop: under `if step % n == 0`,
    /// or past `if step % n: continue`.
    pub(in crate::lint) fn is_periodic(&self, id: Id, in_loop: Id) -> bool {
        self.tree.conditions(id, in_loop).any(|condition| match self.tree.node(condition) {
            AnyNodeRef::StmtIf(it) => self.counts(&it.test, id),
            _ => false,
        }) || self.skips(id, in_loop)
    }

    /// Whether an `if step % n: continue` stands before it in the loop's body.
    pub(in crate::lint) fn skips(&self, id: Id, in_loop: Id) -> bool {
        self.tree.within(in_loop).take_while(|&it| it < id).any(|it| match self.tree.node(it) {
            AnyNodeRef::StmtIf(test) => {
                test.body.last().is_some_and(ruff_python_ast::Stmt::is_continue_stmt)
                    && self.tree.parent(it) == Some(in_loop)
                    && self.counts(&test.test, id)
            }
            _ => false,
        })
    }

    /// Whether a condition has a remainder in it, or a name that was given one.
    fn counts(&self, test: &Expr, at: Id) -> bool {
        self.has_remainder(test)
            || self.names_in(test).iter().any(|name| {
                self.last_assignment(name, at).is_some_and(|it| self.has_remainder(it.value))
            })
    }

    fn has_remainder(&self, expr: &Expr) -> bool {
        self.tree.within(self.tree.id(expr)).any(|id| {
            matches!(self.tree.node(id), AnyNodeRef::ExprBinOp(it)
                if it.op == Operator::Mod && !it.left.is_string_literal_expr())
        })
    }

    /// The names in the conditions that a place is under, within a loop.
    pub(in crate::lint) fn names_of_conditions(&self, id: Id, in_loop: Id) -> HashSet<String> {
        let conditions = self.tree.conditions(id, in_loop);
        let names = conditions.filter_map(|condition| match self.tree.node(condition) {
            AnyNodeRef::StmtIf(it) => Some(self.names_in(&it.test)),
            _ => None,
        });
        names.flatten().collect()
    }

    /// Whether a loss is scaled on its way into `backward`, by a division or a product, within a
    /// function.
    pub(in crate::lint) fn is_scaled(&self, loss: &Expr, function: Id) -> bool {
        let scales = |expr: &Expr| {
            self.tree.within(self.tree.id(expr)).any(|id| {
                matches!(self.tree.node(id), AnyNodeRef::ExprBinOp(it)
                    if matches!(it.op, Operator::Div | Operator::Mult))
                    || matches!(self.tree.node(id), AnyNodeRef::ExprCall(it)
                        if matches!(crate::lint::python::called(it), "div" | "div_" | "mul" | "mul_"))
            })
        };
        let names = self.names_in(loss);
        let names = self.sources(function, names);
        scales(loss)
            || self.assignments.iter().any(|it| {
                it.function == function
                    && names.contains(&it.name)
                    && (matches!(it.how, super::How::Augmented(Operator::Div | Operator::Mult))
                        || is_arithmetic(it.value) && scales(it.value))
            })
            || self.calls.iter().any(|call| {
                self.tree.function(call.id) == function
                    && matches!(call.name(), "div_" | "mul_")
                    && call.on_path().is_some_and(|it| names.contains(&it) || it.ends_with("grad"))
            })
    }
}

/// Whether a value is itself computed, rather than what a function gives for arguments that are.
fn is_arithmetic(expr: &Expr) -> bool {
    match expr {
        Expr::BinOp(_) | Expr::UnaryOp(_) | Expr::If(_) => true,
        Expr::Call(call) => {
            matches!(crate::lint::python::called(call), "div" | "mul" | "mean" | "sum" | "where")
                || crate::lint::python::receiver(call).is_some_and(is_arithmetic)
        }
        _ => false,
    }
}
