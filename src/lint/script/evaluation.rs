use ruff_python_ast::StmtFunctionDef;

use super::{Call, Gradients, Script};
use crate::lint::tree::Id;

/// Words of a function's name that say that it evaluates.
const WORDS: &[&str] = &[
    "eval",
    "evaluate",
    "evaluation",
    "validate",
    "validation",
    "valid",
    "val",
    "test",
    "testing",
    "infer",
    "inference",
    "predict",
];

/// Methods that a framework calls with gradients off.
const BY_FRAMEWORK: &[&str] = &[
    "validation_step",
    "test_step",
    "predict_step",
    "validation_epoch_end",
    "test_epoch_end",
    "on_validation_epoch_end",
    "on_test_epoch_end",
    "prediction_step",
    "_forward",
    "evaluation_loop",
    "forward",
    "__call__",
];

impl<'a> Script<'a> {
    /// Whether a function's name says that it evaluates, and nothing else.
    pub(in crate::lint) fn is_called_evaluation(&self, function: &StmtFunctionDef) -> bool {
        let name = function.name.to_lowercase();
        !BY_FRAMEWORK.contains(&name.as_str())
            && !name.contains("train")
            && name.split('_').any(|word| WORDS.contains(&word))
    }

    /// Whether a framework, or the training step around it, decides on the gradients of a function.
    pub(in crate::lint) fn is_called_by_framework(&self, function: &StmtFunctionDef) -> bool {
        BY_FRAMEWORK.contains(&function.name.as_str())
    }

    /// The calls of models with gradients on that nothing is learnt from: in a function that evaluates,
    /// or in a loop after `model.eval()`. Each with what it is within.
    pub(in crate::lint) fn evaluations(&self) -> Vec<(Call<'a>, Id)> {
        let forwards = self.calls.iter().filter(|call| self.is_model(&call.node.func));
        forwards.filter_map(|call| Some((*call, self.evaluation(call)?))).collect()
    }

    /// The function or loop that a model is evaluated in.
    fn evaluation(&self, call: &Call<'a>) -> Option<Id> {
        let outermost_loop = self.tree.loops(call.id).last()?;
        if self.gradients(call.id) != Gradients::On {
            return None;
        }
        let function = self.named_function(call.id);
        if let Some((id, function)) = function {
            if self.is_called_by_framework(function) || self.is_unit_test(id, function) {
                return None;
            }
            if self.is_called_evaluation(function) {
                return (!self.trains_in(id)).then_some(id);
            }
        }
        let innermost = self.tree.innermost_loop(call.id)?;
        (self.is_in_evaluation_mode(call) && !self.trains_in(innermost)).then(|| {
            match self.trains_in(outermost_loop) {
                true => innermost,
                false => outermost_loop,
            }
        })
    }

    /// Whether the last of `model.eval()` and `model.train()` before it was the former.
    fn is_in_evaluation_mode(&self, call: &Call<'a>) -> bool {
        let Some(model) = crate::lint::python::path(&call.node.func) else { return false };
        let function = self.tree.function(call.id);
        let switch = self.calls.iter().rev().find(|it| {
            it.id < call.id
                && matches!(it.name(), "eval" | "train")
                && it.on_path().as_deref() == Some(&model)
                && self.tree.function(it.id) == function
                && !self.tree.exclude_each_other(it.id, call.id)
        });
        switch.is_some_and(|it| it.name() == "eval")
    }

    fn is_unit_test(&self, id: Id, function: &StmtFunctionDef) -> bool {
        let of_case = self.tree.class(id).is_some_and(|it| it.name.contains("Test"));
        function.name.starts_with("test_")
            && (of_case || self.uses("pytest") || self.uses("unittest"))
    }
}
