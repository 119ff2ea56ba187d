use ruff_python_ast::{AnyNodeRef, Expr, Operator};

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::base;
use crate::lint::rule::Traps;
use crate::lint::script::{Graph, Often, Script};
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V01",
    name: "loss-with-graph",
    summary: "a loss that is summed or kept together with its graph",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for it in &script.assignments {
        let added = match script.tree.node(it.id) {
            AnyNodeRef::StmtAugAssign(statement) if statement.op == Operator::Add => {
                &*statement.value
            }
            AnyNodeRef::StmtAssign(statement) => match added(&it.name, &statement.value) {
                Some(added) => added,
                None => continue,
            },
            _ => continue,
        };
        if let Some(kept) = Kept::of(script, it.id, &it.name, added, Graph::Loss) {
            let (sum, loss) = (script.words(it.target), script.words(added));
            traps.add(
                &script.tree.node(it.id),
                kept.severity(),
                format!("`{sum}` keeps the graph of each `{loss}` that is added: {}", kept.costs()),
                format!(
                    "add `{}`, or its `.detach()` to stay on the GPU",
                    with_item(script, added)
                ),
            );
        }
    }
    for (list, call, value) in appended(script) {
        if let Some(kept) = Kept::of(script, call, &list, value, Graph::Loss) {
            let loss = script.words(value);
            traps.add(
                &script.tree.node(call),
                kept.severity(),
                format!("`{list}` keeps each `{loss}` with its graph: {}", kept.costs()),
                format!(
                    "append `{}`, or its `.detach()` to stay on the GPU",
                    with_item(script, value)
                ),
            );
        }
    }
}

/// `x` of `total = total + x`.
fn added<'a>(name: &str, value: &'a Expr) -> Option<&'a Expr> {
    let Expr::BinOp(sum) = value else { return None };
    let is_total = |it: &Expr| crate::lint::python::path(it).as_deref() == Some(name);
    match sum.op {
        Operator::Add if is_total(&sum.left) => Some(&sum.right),
        Operator::Add if is_total(&sum.right) => Some(&sum.left),
        _ => None,
    }
}

fn with_item(script: &Script<'_>, value: &Expr) -> String {
    let words = script.words(value);
    match value {
        Expr::BinOp(_) | Expr::UnaryOp(_) | Expr::If(_) => format!("({words}).item()"),
        _ => format!("{words}.item()"),
    }
}

/// `list.append(value)`: the list, the call and the value.
pub(super) fn appended<'a>(script: &Script<'a>) -> Vec<(String, Id, &'a Expr)> {
    let found = script.calls.iter().filter(|call| call.name() == "append");
    found.filter_map(|call| Some((base(call.on()?)?, call.id, call.argument(0)?))).collect()
}

/// A value with a graph that outlives its iteration.
pub(super) struct Kept {
    /// Gradients are computed of it, which frees what the graph had saved.
    is_freed: bool,
    /// What keeps it is begun anew every so many iterations.
    is_bounded: bool,
}

impl Kept {
    /// Whether `value`, added at `id` to what `name` holds, is kept with a graph of that kind.
    pub(super) fn of(
        script: &Script<'_>,
        id: Id,
        name: &str,
        value: &Expr,
        kind: Graph,
    ) -> Option<Self> {
        let function = script.tree.function(id);
        let is_step = script.named_function(id).is_some_and(|(_, it)| &*it.name == "training_step");
        let in_loop = script.tree.innermost_loop(id);
        let is_repeated = in_loop.is_some() || is_step && name.starts_with("self.");
        if !is_repeated || script.graph(value) != kind {
            return None;
        }
        let anew = in_loop.and_then(|in_loop| script.begun_anew(name, in_loop));
        if anew == Some(Often::EachTime) {
            return None;
        }
        // Summed to be learnt from, there or by whoever gets it.
        let learnt_from = script.comes_into_backward(function);
        let elsewhere = || {
            let functions = script.functions.iter().map(|(id, _)| *id);
            functions.into_iter().any(|it| script.comes_into_backward(it).contains(name))
        };
        if learnt_from.contains(name) || name.starts_with("self.") && elsewhere() {
            return None;
        }
        let is_freed = script.names_in(value).iter().any(|it| learnt_from.contains(it));
        let evaluates = script
            .evaluations()
            .iter()
            .any(|(_, within)| script.tree.within(*within).contains(&id));
        let is_module = function == crate::lint::tree::ROOT;
        (is_freed
            || evaluates
            || is_step
            || is_module && script.trains_in(function)
            || is_dropped(script, id, name))
        .then_some(Self { is_freed, is_bounded: anew.is_some() })
    }

    pub(super) fn severity(&self) -> Severity {
        match (self.is_freed, self.is_bounded) {
            (true, true) => Severity::Note,
            (true, false) | (false, true) => Severity::Warning,
            (false, false) => Severity::Error,
        }
    }

    pub(super) fn costs(&self) -> &'static str {
        match (self.is_freed, self.is_bounded) {
            (true, true) => "the graphs' nodes stay until it is begun anew",
            (true, false) => {
                "the graphs' nodes, and the tensors in them that `backward` does not free, pile up"
            }
            (false, true) => {
                "no `backward` frees it, so activations pile up until it is begun anew"
            }
            (false, false) => {
                "no `backward` frees it, so the activations of every iteration pile up"
            }
        }
    }
}

/// Whether a sum in a function that learns from something else is neither returned nor handed on.
fn is_dropped(script: &Script<'_>, id: Id, name: &str) -> bool {
    let Some((function, _)) = script.named_function(id) else { return false };
    script.trains_in(function)
        && !script.tree.within(function).any(|it| match script.tree.node(it) {
            AnyNodeRef::StmtReturn(it) => {
                it.value.as_ref().is_some_and(|it| script.names_in(it).contains(name))
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{findings, lines};
    use crate::lint::Severity;

    const RULE: &str = "loss-with-graph";

    /// An epoch of training that does `add` with each loss.
    fn epoch(add: &str) -> String {
        format!(
            "
def epoch(self, model, loader, criterion):
    total, losses = 0, []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        {add}
    return total, losses
"
        )
    }

    #[test]
    fn a_running_loss_is_found_in_every_form() {
        for add in [
            "total += loss",
            "total = total + loss",
            "total = loss + total",
            "total += loss * 2",
            "total += loss.mean()",
            "total += loss.cpu()",
            "self.total += loss",
            "losses.append(loss)",
        ] {
            let code = epoch(add);
            let found = findings(RULE, &code);
            assert_eq!(found.len(), 1, "{add}");
            assert_eq!((found[0].place.line, found[0].severity), (7, Severity::Warning), "{add}");
        }
    }

    #[test]
    fn a_loss_without_its_graph_is_fine() {
        for add in [
            "total += loss.item()",
            "total += float(loss)",
            "total += loss.detach()",
            "total += loss.data",
            "total += loss.detach().float()",
            "total += loss.cpu().detach().numpy()",
            "loss = loss.item(); total += loss",
            "total += reduced(loss)",
            "with torch.no_grad(): total += loss",
            "losses.append(loss.item())",
        ] {
            let code = epoch(add);
            assert!(lines(RULE, &code).is_empty(), "{add}");
        }
    }

    #[test]
    fn a_sum_that_is_learnt_from_is_fine() {
        let code = "
for batch in loader:
    loss = 0
    for t in range(10):
        loss += criterion(model(batch[t]), batch[t + 1])
    loss.backward()
for batch in loader:
    losses = []
    for t in range(10):
        losses.append(criterion(model(batch[t]), batch[t + 1]))
    torch.stack(losses).mean().backward()
for x in loader:
    total = criterion(model(x), x)
    mean = total / 4
    mean.backward()
def loss_of(outputs):
    total = 0
    for output in outputs:
        total += F.mse_loss(output, output)
    return total
";
        assert!(lines(RULE, code).is_empty());
    }

    #[test]
    fn without_a_backward_it_is_an_error() {
        let code = "
def evaluate(model, loader):
    total = 0
    for x, y in loader:
        total += F.cross_entropy(model(x), y)
    return total
";
        let found = findings(RULE, code);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Error);
    }

    #[test]
    fn a_sum_that_is_begun_anew_now_and_then_is_a_note() {
        let code = "
total = 0
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    loss.backward()
    total += loss
    if i % 100 == 0:
        print(total)
        total = 0
";
        let found = findings(RULE, code);
        assert_eq!((found[0].place.line, found[0].severity), (6, Severity::Note));
    }

    #[test]
    fn a_sum_that_each_iteration_begins_anew_is_fine() {
        let code = "
for x, y in loader:
    total = 0
    loss = criterion(model(x), y)
    loss.backward()
    total += loss
";
        assert!(lines(RULE, code).is_empty());
    }
}
