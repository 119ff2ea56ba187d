use std::collections::HashSet;

use ruff_python_ast::{Expr, ExprCall};

use super::{Call, Script};
use crate::lint::python::{called, last, path};
use crate::lint::tree::Id;

/// A call that computes gradients.
#[derive(Debug)]
pub(in crate::lint) struct Backward<'a> {
    pub(in crate::lint) id: Id,
    pub(in crate::lint) function: Id,
    pub(in crate::lint) node: &'a ExprCall,
    /// Of what.
    pub(in crate::lint) loss: &'a Expr,
    /// A framework does it, which may scale the loss by itself.
    pub(in crate::lint) by_framework: bool,
}

/// A call on an optimizer, or on a model in its place.
#[derive(Debug)]
pub(in crate::lint) struct OnOptimizer {
    pub(in crate::lint) id: Id,
    /// The dotted name of the optimizer or model.
    pub(in crate::lint) name: String,
}

/// Who is asked for `backward(loss)` in place of the loss.
const FRAMEWORKS: &[&str] =
    &["accelerator", "fabric", "engine", "strategy", "runner", "scaler", "trainer"];

pub(super) fn backwards<'a>(script: &Script<'a>) -> Vec<Backward<'a>> {
    let found = |call: &Call<'a>| {
        let (loss, by_framework) = match call.name() {
            "backward" => of_backward(call)?,
            "manual_backward" => (call.argument(0)?, true),
            // timm's and others' scalers, which are called with loss and optimizer.
            name if name.contains("scaler") && call.node.arguments.args.len() >= 2 => {
                (call.argument(0)?, true)
            }
            _ => return None,
        };
        let function = script.tree.function(call.id);
        Some(Backward { id: call.id, function, node: call.node, loss, by_framework })
    };
    script.calls.iter().filter_map(found).collect()
}

fn of_backward<'a>(call: &Call<'a>) -> Option<(&'a Expr, bool)> {
    let on = call.on()?;
    if let Expr::Call(scaled) = on
        && called(scaled) == "scale"
    {
        return Some((scaled.arguments.find_positional(0)?, false));
    }
    let name = path(on).unwrap_or_default();
    let name = last(&name).to_lowercase();
    match call.argument(0) {
        // `torch.autograd.backward(losses)`.
        Some(losses) if name == "autograd" => Some((losses, false)),
        Some(loss) if FRAMEWORKS.iter().any(|it| name.contains(it)) => Some((loss, true)),
        Some(loss) if name.contains("optim") || name == "amp" => Some((loss, true)),
        _ => Some((on, false)),
    }
}

/// Dotted names that optimizers were given.
pub(super) fn optimizers(script: &Script<'_>) -> HashSet<String> {
    let is_optimizer = |value: &Expr| match value {
        Expr::Call(call) => {
            let full = script.full(&call.func).unwrap_or_default();
            let last = last(&full).to_lowercase();
            (full.starts_with("torch.optim.") || last.contains("optim"))
                && !full.contains("lr_scheduler")
        }
        _ => false,
    };
    let made = script.assignments.iter().filter(|it| is_optimizer(it.value));
    made.map(|it| it.name.clone()).collect()
}

fn is_called_optimizer(name: &str) -> bool {
    let last = last(name).to_lowercase();
    (last.contains("optim") || last == "opt" || last.starts_with("opt_") || last.ends_with("_opt"))
        && !last.contains("sched")
}

pub(super) fn steps(script: &Script<'_>, optimizers: &HashSet<String>) -> Vec<OnOptimizer> {
    let is_optimizer = |name: &String| optimizers.contains(name) || is_called_optimizer(name);
    let found = |call: &Call<'_>| {
        if call.name() != "step" {
            return None;
        }
        let stepped = call.on_path().filter(&is_optimizer);
        let by_scaler = || call.argument(0).and_then(path).filter(&is_optimizer);
        let name = stepped.or_else(by_scaler)?;
        Some(OnOptimizer { id: call.id, name })
    };
    script.calls.iter().filter_map(found).collect()
}

pub(super) fn zeroings(script: &Script<'_>) -> Vec<OnOptimizer> {
    let found = |call: &Call<'_>| {
        let name = call.on_path().filter(|_| call.name() == "zero_grad")?;
        Some(OnOptimizer { id: call.id, name })
    };
    script.calls.iter().filter_map(found).collect()
}

impl<'a> Script<'a> {
    /// Whether anything is learnt, by the script itself or a framework that it hands a model to.
    pub(in crate::lint) fn trains(&self) -> bool {
        const STEPS: &[&str] = &["training_step", "compute_loss"];
        !self.backwards.is_empty()
            || self.functions.iter().any(|(_, function)| STEPS.contains(&function.name.as_str()))
            || self.calls.iter().any(|call| matches!(call.name(), "Trainer" | "fit"))
    }

    /// The calls within a node that compute gradients.
    pub(in crate::lint) fn backwards_in(&self, id: Id) -> impl Iterator<Item = &Backward<'a>> {
        let within = self.tree.within(id);
        self.backwards.iter().filter(move |it| within.contains(&it.id))
    }

    /// Whether gradients are computed within a node.
    pub(in crate::lint) fn trains_in(&self, id: Id) -> bool {
        self.backwards_in(id).next().is_some()
            || self.calls_in(id).any(|call| {
                call.name() == "grad"
                    && self.full(&call.node.func).is_some_and(|it| it.contains("autograd"))
            })
    }

    /// The names that gradients are computed of in a function, and those that come into them.
    pub(in crate::lint) fn comes_into_backward(&self, function: Id) -> HashSet<String> {
        let losses = self.backwards.iter().filter(|it| it.function == function);
        let names = losses.flat_map(|it| self.names_in(it.loss)).collect();
        self.sources(function, names)
    }

    /// The loops in which gradients are computed, each the innermost around the call, with the first
    /// such call.
    pub(in crate::lint) fn training_loops(&self) -> Vec<Id> {
        let mut loops: Vec<_> =
            self.backwards.iter().filter_map(|it| self.tree.innermost_loop(it.id)).collect();
        loops.sort_unstable();
        loops.dedup();
        loops
    }
}
