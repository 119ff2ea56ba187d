use super::Rule;
use super::loss_with_graph::{Kept, appended};
use crate::lint::finding::Severity;
use crate::lint::rule::Traps;
use crate::lint::script::{Graph, Script};

pub(super) const RULE: Rule = Rule {
    number: "V08",
    name: "kept-tensors",
    summary: "a model's outputs that are collected in a list with their graphs",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for (list, call, value) in appended(script) {
        let is_emptied = script.calls.iter().any(|it| {
            matches!(it.name(), "clear" | "pop" | "popleft")
                && it.on_path().as_deref() == Some(&list)
        });
        if is_emptied {
            continue;
        }
        if let Some(kept) = Kept::of(script, call, &list, value, Graph::Output) {
            let value = script.words(value);
            traps.add(
                &script.tree.node(call),
                kept.severity(),
                format!(
                    "`{list}` keeps each `{value}` on the GPU with its graph: {}",
                    kept.costs()
                ),
                format!("append `{value}.detach().cpu()`"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{findings, lines};
    use crate::lint::Severity;

    const RULE: &str = "kept-tensors";

    #[test]
    fn outputs_that_are_collected_while_training_are_found() {
        let code = "
outputs = []
for x, y in loader:
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    outputs.append(out)
";
        let found = findings(RULE, code);
        assert_eq!(
            found.iter().map(|it| (it.place.line, it.severity)).collect::<Vec<_>>(),
            [(7, Severity::Warning)]
        );
    }

    #[test]
    fn outputs_of_an_evaluation_with_gradients_are_an_error() {
        let code = "
def evaluate(model, loader):
    outputs = []
    for x, y in loader:
        outputs.append(model(x).logits)
    return outputs
";
        assert_eq!(findings(RULE, code)[0].severity, Severity::Error);
    }

    #[test]
    fn what_has_no_graph_or_is_learnt_from_is_fine() {
        for kept in [
            "outputs.append(out.detach().cpu())",
            "outputs.append(out.argmax(1))",
            "outputs.append(out.tolist())",
            "outputs.append(x)",
            "outputs.append(out); outputs.clear()",
        ] {
            let code = format!(
                "
outputs = []
for x, y in loader:
    out = model(x)
    criterion(out, y).backward()
    {kept}
"
            );
            assert!(lines(RULE, &code).is_empty(), "{kept}");
        }
        let learnt = "
for x, y in loader:
    outputs = []
    for t in range(10):
        outputs.append(model(x[t]))
    loss = criterion(torch.stack(outputs), y)
    loss.backward()
class Net:
    def forward(self, x):
        outputs = []
        for layer in self.layers:
            outputs.append(self.net(x))
        return outputs
";
        assert!(lines(RULE, learnt).is_empty());
    }
}
