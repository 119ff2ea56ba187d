use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::rule::Traps;
use crate::lint::script::{How, Script};

pub(super) const RULE: Rule = Rule {
    number: "V12",
    name: "carried-state",
    summary: "a hidden state that goes from one iteration into the next with its graph",
    severity: Severity::Error,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for assignment in &script.assignments {
        let Some(in_loop) = script.tree.innermost_loop(assignment.id) else { continue };
        let ruff_python_ast::Expr::Call(call) = assignment.value else { continue };
        let name = &assignment.name;
        let is_carried = assignment.how == How::Part
            && script.is_model(&call.func)
            && call.arguments.args.iter().any(|it| script.names_in(it).contains(name));
        let learns = script
            .backwards
            .iter()
            .any(|it| it.id > assignment.id && script.tree.innermost_loop(it.id) == Some(in_loop));
        let is_cut = script.assignments.iter().any(|it| {
            it.name == *name
                && it.id != assignment.id
                && script.tree.within(in_loop).contains(&it.id)
        }) || script.calls_in(in_loop).any(|it| {
            it.name() == "detach_"
                && it.on().and_then(crate::lint::python::base).as_deref() == Some(name)
        }) || call.arguments.args.iter().any(|it| {
            matches!(it, ruff_python_ast::Expr::Call(_)) && script.names_in(it).contains(name)
        });
        if is_carried
            && learns
            && !is_cut
            && script.gradients(assignment.id) == crate::lint::script::Gradients::On
        {
            traps.error(
                &script.tree.node(assignment.id),
                format!(
                    "`{name}` carries its graph into the next iteration: `backward` fails there, or with \
                     `retain_graph=True` goes back to the first"
                ),
                format!("`{name} = {name}.detach()` before the forward; of a tuple, each of its tensors"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "carried-state";

    #[test]
    fn a_state_that_is_not_cut_off_is_found() {
        let code = "
for x, y in loader:
    out, hidden = model(x, hidden)
    criterion(out, y).backward()
";
        assert_eq!(lines(RULE, code), [3]);
    }

    #[test]
    fn a_state_that_is_cut_off_or_begun_anew_is_fine() {
        for cut in [
            "hidden = hidden.detach()",
            "hidden = repackage_hidden(hidden)",
            "hidden = tuple(it.detach() for it in hidden)",
            "hidden.detach_()",
            "hidden = model.init_hidden()",
        ] {
            let code = format!(
                "
for x, y in loader:
    {cut}
    out, hidden = model(x, hidden)
    criterion(out, y).backward()
"
            );
            assert!(lines(RULE, &code).is_empty(), "{cut}");
        }
        let through_time = "
for x, y in loader:
    hidden = None
    for t in range(10):
        out, hidden = model(x[t], hidden)
    criterion(out, y).backward()
";
        assert!(lines(RULE, through_time).is_empty());
    }
}
