use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{is_false, keyword};
use crate::lint::rule::Traps;
use crate::lint::script::Script;

pub(super) const RULE: Rule = Rule {
    number: "V16",
    name: "zeroed-in-place",
    summary: "`zero_grad(set_to_none=False)`, which keeps the gradients' memory through the forward",
    severity: Severity::Note,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for call in script.calls.iter().filter(|call| call.name() == "zero_grad") {
        let kept =
            keyword(call.node, "set_to_none").or_else(|| call.argument(0)).is_some_and(is_false);
        if kept {
            traps.note(
                call.node,
                "the gradients keep their memory, as much as the trained weights take, through the forward",
                "leave `set_to_none=False` out: since PyTorch 2.0 they are freed by default",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "zeroed-in-place";

    #[test]
    fn gradients_that_are_kept_are_found() {
        assert_eq!(lines(RULE, "\noptimizer.zero_grad(set_to_none=False)\n"), [2]);
        assert!(
            lines(RULE, "\noptimizer.zero_grad()\noptimizer.zero_grad(set_to_none=True)\n")
                .is_empty()
        );
    }
}
