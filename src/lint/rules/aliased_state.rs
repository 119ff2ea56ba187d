use ruff_python_ast::Expr;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{called, receiver};
use crate::lint::rule::Traps;
use crate::lint::script::{How, Script};

pub(super) const RULE: Rule = Rule {
    number: "V14",
    name: "aliased-state-dict",
    summary: "the best weights kept as a `state_dict()` that training goes on to change",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for assignment in &script.assignments {
        let Expr::Call(call) = assignment.value else { continue };
        let name = assignment.name.to_lowercase();
        let is_kept =
            assignment.how == How::Whole && name.contains("best") && called(call) == "state_dict";
        let in_loop = script.tree.innermost_loop(assignment.id);
        if let (true, Some(model), true) = (is_kept, receiver(call), in_loop.is_some()) {
            let model = script.words(model);
            traps.warning(
                &script.tree.node(assignment.id),
                format!("`{}` holds the weights themselves, which each further step changes", assignment.name),
                format!(
                    "`{{k: v.detach().cpu().clone() for k, v in {model}.state_dict().items()}}` keeps a copy \
                     in host memory; `copy.deepcopy` keeps one on the GPU"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "aliased-state-dict";

    #[test]
    fn weights_that_go_on_changing_are_found() {
        let code = "
for epoch in range(9):
    if accuracy > best:
        best_weights = model.state_dict()
";
        assert_eq!(lines(RULE, code), [4]);
    }

    #[test]
    fn copies_and_files_are_fine() {
        let code = "
best_weights = model.state_dict()
for epoch in range(9):
    best_weights = copy.deepcopy(model.state_dict())
    torch.save(model.state_dict(), 'best.pt')
    state = model.state_dict()
";
        assert!(lines(RULE, code).is_empty());
    }
}
