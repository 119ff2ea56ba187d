use std::collections::HashSet;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::rule::Traps;
use crate::lint::script::Script;
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V02",
    name: "missing-no-grad",
    summary: "an evaluation that records a graph which nothing is learnt from",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    let mut told: HashSet<Id> = HashSet::new();
    for (call, within) in script.evaluations() {
        if !told.insert(within) {
            continue;
        }
        let what = match script.functions.iter().find(|(id, _)| *id == within) {
            Some((_, function)) => format!("`{}` evaluates", function.name),
            None => "this loop evaluates".to_owned(),
        };
        traps.warning(
            call.node,
            format!(
                "{what} with gradients on: each forward keeps its activations until its results are gone"
            ),
            "put it under `with torch.inference_mode():`, or `torch.no_grad()`; `eval()` alone does not",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "missing-no-grad";

    #[test]
    fn an_evaluation_with_gradients_is_found_once() {
        let code = "
def validate(model, loader, criterion):
    model.eval()
    for x, y in loader:
        out = model(x)
        again = model(x)
";
        assert_eq!(lines(RULE, code), [5]);
    }

    #[test]
    fn a_loop_after_eval_is_found_wherever_it_stands() {
        let code = "
for epoch in range(9):
    model.train()
    for x, y in loader:
        criterion(model(x), y).backward()
    model.eval()
    for x, y in val_loader:
        correct += (model(x).argmax(1) == y).sum().item()
";
        assert_eq!(lines(RULE, code), [8]);
    }

    #[test]
    fn no_grad_counts_in_every_form() {
        for (above, around) in [
            ("@torch.no_grad()", "if True"),
            ("@torch.inference_mode()", "if True"),
            ("@torch.no_grad", "if True"),
            ("", "with torch.no_grad()"),
            ("", "with torch.inference_mode(), other()"),
            ("", "with torch.set_grad_enabled(False)"),
            ("", "with torch.set_grad_enabled(phase == 'train')"),
            ("", "with torch.no_grad() if fast else nullcontext()"),
            ("", "with self.evaluation_context()"),
        ] {
            let code = format!(
                "
{above}
def evaluate(self, model, loader):
    model.eval()
    {around}:
        for x, y in loader:
            out = model(x)
"
            );
            assert!(lines(RULE, &code).is_empty(), "{above} {around}");
        }
    }

    #[test]
    fn no_grad_at_all_callers_counts() {
        let code = "
def evaluate(model, loader):
    for x, y in loader:
        out = model(x)
with torch.no_grad():
    evaluate(model, loader)
";
        assert!(lines(RULE, code).is_empty());
        let one_without = format!("{code}evaluate(model, loader)\n");
        assert_eq!(lines(RULE, &one_without), [4]);
        let switched = "
torch.set_grad_enabled(False)
def evaluate(model, loader):
    for x, y in loader:
        out = model(x)
evaluate(model, loader)
";
        assert!(lines(RULE, switched).is_empty());
    }

    #[test]
    fn a_method_is_known_by_self() {
        let code = "
class Trainer:
    def evaluate(self):
        for x, y in self.loader:
            out = self.model(x)
    @torch.no_grad()
    def run(self):
        other.evaluate()
";
        assert_eq!(lines(RULE, code), [5]);
        assert!(lines(RULE, &code.replace("other.", "self.")).is_empty());
    }

    #[test]
    fn what_learns_or_is_a_frameworks_is_fine() {
        let code = "
def test_time_training(model, loader):
    model.eval()
    for x, y in loader:
        F.mse_loss(model(x), y).backward()
class Net(LightningModule):
    def validation_step(self, batch, index):
        for x in batch:
            out = self.model(x)
def predict(texts):
    tokenizer = AutoTokenizer.from_pretrained('bert')
    for text in texts:
        batch = tokenizer(text)
def train(model, loader):
    for x, y in loader:
        model(x).sum().backward()
def attack(model, loader):
    model.eval()
    for x, y in loader:
        gradient = torch.autograd.grad(model(x).sum(), x)
";
        assert!(lines(RULE, code).is_empty());
    }
}
