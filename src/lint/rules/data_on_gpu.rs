use ruff_python_ast::{AnyNodeRef, Expr};

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{called, path};
use crate::lint::rule::Traps;
use crate::lint::script::{Call, How, Script};
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V11",
    name: "data-on-gpu",
    summary: "a whole data set that is moved to the GPU",
    severity: Severity::Note,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    if script.backwards.is_empty() {
        return;
    }
    for call in &script.calls {
        if !script.moves_to_gpu(call.node) || script.tree.innermost_loop(call.id).is_some() {
            continue;
        }
        if let Some(name) = data_set(script, call) {
            traps.note(
                call.node,
                format!("all of `{name}` is on the GPU for the whole training, of which a step needs a batch"),
                "keep it in host memory, pinned, and move each batch, unless it is small",
            );
        }
    }
}

/// The name of what is moved, where batches are cut out of it in a loop, or a data set made of it.
fn data_set(script: &Script<'_>, call: &Call<'_>) -> Option<String> {
    if let Some(set) = wrapped(script, call.id) {
        return Some(set);
    }
    let statement = script.statement(call.id);
    let assignment = script.assignments.iter().find(|it| {
        it.id == statement && it.how == How::Whole && script.tree.id(it.value) == call.id
    })?;
    let name = &assignment.name;
    let is_wrapped = script.calls.iter().any(|it| {
        called(it.node) == "TensorDataset"
            && it.id > statement
            && it.node.arguments.args.iter().any(|argument| path(argument).as_deref() == Some(name))
    });
    let is_cut = || script.training_loops().iter().any(|&in_loop| cuts(script, in_loop, name));
    (is_wrapped || is_cut()).then(|| name.clone())
}

/// `TensorDataset(x.cuda(), …)`.
fn wrapped(script: &Script<'_>, call: Id) -> Option<String> {
    let mut above = script.tree.above(call).take_while(|&id| !script.tree.node(id).is_statement());
    let is_set = above.any(|id| {
        matches!(script.tree.node(id), AnyNodeRef::ExprCall(it) if called(it) == "TensorDataset")
    });
    let AnyNodeRef::ExprCall(moved) = script.tree.node(call) else { return None };
    is_set.then(|| crate::lint::python::receiver(moved).map(|it| script.words(it))).flatten()
}

/// `name[i:j]`, `name[permutation[…]]` or `name[indices]` with what the loop gives.
fn cuts(script: &Script<'_>, in_loop: Id, name: &str) -> bool {
    script.tree.within(in_loop).any(|id| match script.tree.node(id) {
        AnyNodeRef::ExprSubscript(it) => {
            path(&it.value).as_deref() == Some(name) && is_batch(&it.slice)
        }
        _ => false,
    })
}

fn is_batch(slice: &Expr) -> bool {
    match slice {
        Expr::Slice(slice) => slice.lower.is_some() && slice.upper.is_some(),
        Expr::Name(name) => {
            ["idx", "ind", "perm", "batch", "ids"].iter().any(|it| name.id.contains(it))
        }
        Expr::Subscript(_) => true,
        Expr::Tuple(tuple) => tuple.elts.first().is_some_and(is_batch),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "data-on-gpu";

    #[test]
    fn data_that_batches_are_cut_out_of_is_found() {
        for batch in ["x[i:i + 32]", "x[indices]", "x[permutation[i:i + 32]]"] {
            let code = format!(
                "
x = load().cuda()
for i in range(0, 1000, 32):
    model({batch}).sum().backward()
"
            );
            assert_eq!(lines(RULE, &code), [2], "{batch}");
        }
        let set = "
data = TensorDataset(x.to(device), y)
for x, y in DataLoader(data):
    model(x).sum().backward()
";
        assert_eq!(lines(RULE, set), [2]);
    }

    #[test]
    fn models_and_batches_are_fine() {
        let code = "
model = Net().cuda()
mean = torch.zeros(3).cuda()
for i, x in enumerate(loader):
    x = x.cuda()
    model(x[:, 0] - mean).sum().backward()
";
        assert!(lines(RULE, code).is_empty());
    }
}
