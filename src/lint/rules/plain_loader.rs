use ruff_python_ast::Expr;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{called, has_unseen_arguments, keyword, last, path};
use crate::lint::rule::Traps;
use crate::lint::script::{Call, Script};

pub(super) const RULE: Rule = Rule {
    number: "V09",
    name: "plain-loader",
    summary: "a DataLoader without workers or pinned memory that feeds a GPU",
    severity: Severity::Note,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    if !script.uses_gpu() || !script.trains() {
        return;
    }
    let plain: Vec<_> =
        script.calls.iter().filter_map(|call| Some((call, lacks(script, call)?))).collect();
    let Some((call, lacks)) = plain.first() else { return };
    let more = match plain.len() - 1 {
        0 => String::new(),
        1 => ", nor has another".to_owned(),
        more => format!(", nor have {more} others"),
    };
    traps.note(
        call.node,
        format!("this loader has no `{lacks}`{more}: the GPU may wait for its data"),
        "`num_workers=4, pin_memory=True`, and `.to(device, non_blocking=True)` where the batch is moved",
    );
}

/// What it lacks, unless it says enough or what it says cannot be seen.
fn lacks(script: &Script<'_>, call: &Call<'_>) -> Option<&'static str> {
    let full = script.full(&call.node.func)?;
    if last(&full) != "DataLoader"
        || has_unseen_arguments(call.node)
        || holds_tensors(script, call)
        || keyword(call.node, "collate_fn").and_then(path).as_deref() == Some("list")
    {
        return None;
    }
    let has = |name: &str, place: usize| {
        keyword(call.node, name).is_some() || call.argument(place).is_some()
    };
    match (has("num_workers", 5), has("pin_memory", 7)) {
        (false, false) => Some("num_workers` and no `pin_memory"),
        (false, true) => Some("num_workers"),
        (true, false) => Some("pin_memory"),
        (true, true) => None,
    }
}

/// Whether its data set is made of tensors, which need no worker and may be on the GPU already, or
/// is empty.
fn holds_tensors(script: &Script<'_>, call: &Call<'_>) -> bool {
    let made = |expr: &Expr| matches!(expr, Expr::Call(it) if called(it) == "TensorDataset");
    call.argument(0).is_some_and(|data| {
        made(data)
            || matches!(data, Expr::List(list) if list.is_empty())
            || path(data)
                .and_then(|name| script.known_as(&name, call.id))
                .is_some_and(|it| made(it.value))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::lint::Severity;

    const RULE: &str = "plain-loader";

    fn training(loader: &str) -> String {
        format!(
            "
from torch.utils.data import DataLoader
loader = {loader}
for x in loader:
    model(x.to(device)).sum().backward()
"
        )
    }

    #[test]
    fn plain_loaders_are_one_note() {
        let code = training("DataLoader(data, 32); other = DataLoader(data, num_workers=2)");
        let found = findings(RULE, &code);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].place.line, found[0].severity), (3, Severity::Note));
        assert!(found[0].message.contains("nor has another"));
    }

    #[test]
    fn said_or_unseen_options_are_fine() {
        for loader in [
            "DataLoader(data, num_workers=4, pin_memory=True)",
            "DataLoader(data, num_workers=0, pin_memory=False)",
            "DataLoader(data, **options)",
            "DataLoader(TensorDataset(x, y), 32)",
            "DataLoader([])",
            "DataLoader(texts, collate_fn=list)",
        ] {
            assert!(findings(RULE, &training(loader)).is_empty(), "{loader}");
        }
        let on_cpu = training("DataLoader(data, 32)").replace(".to(device)", "");
        assert!(findings(RULE, &on_cpu).is_empty());
    }
}
