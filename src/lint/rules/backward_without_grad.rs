use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::rule::Traps;
use crate::lint::script::{Gradients, Script};

pub(super) const RULE: Rule = Rule {
    number: "V13",
    name: "backward-without-grad",
    summary: "`backward` of a loss that was computed without a graph",
    severity: Severity::Error,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for backward in &script.backwards {
        if backward.by_framework {
            continue;
        }
        let name = crate::lint::python::path(backward.loss);
        let computed = name.and_then(|name| script.last_assignment(&name, backward.id));
        let (here, there) = (
            script.gradients_in_function(backward.id),
            computed.map_or_else(
                || script.gradients_in_function(backward.id),
                |it| script.gradients_in_function(it.id),
            ),
        );
        if there == Gradients::Off && (here == Gradients::Off || computed.is_some()) {
            traps.error(
                backward.node,
                format!(
                    "`{}` is computed with gradients off: there is no graph to go back through",
                    script.words(backward.loss)
                ),
                "compute it outside of `no_grad` or `inference_mode`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "backward-without-grad";

    #[test]
    fn a_loss_without_a_graph_is_found() {
        let code = "
with torch.no_grad():
    loss = criterion(model(x), y)
loss.backward()
@torch.no_grad()
def step():
    loss = criterion(model(x), y)
    loss.backward()
";
        assert_eq!(lines(RULE, code), [4, 8]);
    }

    #[test]
    fn a_loss_with_one_is_fine() {
        let code = "
with torch.no_grad():
    target = teacher(x)
    with torch.enable_grad():
        loss = criterion(model(x), target)
        loss.backward()
loss = criterion(model(x), target)
loss.backward()
";
        assert!(lines(RULE, code).is_empty());
        let of_another_name = "
class Trainer:
    @torch.no_grad()
    def evaluate(self):
        self.model.train()
        self.accumulate()
    def train(self):
        loss = self.model(x)
        loss.backward()
    def accumulate(self):
        loss = self.model(x)
        loss.backward()
";
        assert!(lines(RULE, of_another_name).is_empty());
    }
}
