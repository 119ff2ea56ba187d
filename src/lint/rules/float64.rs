use ruff_python_ast::{AnyNodeRef, Expr, ExprCall};

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{called, is_float, keyword, last, path, receiver};
use crate::lint::rule::Traps;
use crate::lint::script::Script;
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V07",
    name: "float64",
    summary: "float64, NumPy's default, on its way to the GPU",
    severity: Severity::Warning,
    check,
};

/// What makes an array of float64 unless told otherwise, of `numpy` and `numpy.random`.
const MAKERS: &[&str] = &[
    "rand",
    "randn",
    "random",
    "random_sample",
    "uniform",
    "normal",
    "standard_normal",
    "zeros",
    "ones",
    "empty",
    "linspace",
    "eye",
];

/// What takes an array over with its type.
const TAKERS: &[&str] = &["tensor", "from_numpy", "as_tensor"];

fn check(script: &Script<'_>, traps: &mut Traps) {
    let feeds_gpu = script.uses_gpu() && script.trains();
    for call in &script.calls {
        let full = script.full(&call.node.func).unwrap_or_default();
        let takes = full.starts_with("torch.") && TAKERS.contains(&last(&full));
        if feeds_gpu && takes && keyword(call.node, "dtype").is_none() {
            let array = call.argument(0).filter(|it| is_float64_array(script, it));
            if let Some(array) = array.filter(|_| !is_cast(script, call.id)) {
                traps.warning(
                    call.node,
                    format!(
                        "`{}` is float64, NumPy's default: twice the memory of float32, and many times \
                         slower on most GPUs",
                        script.words(array)
                    ),
                    "`dtype=torch.float32`, or `.astype(np.float32)` on the array",
                );
            }
        }
        explicit(script, call.node, &full, traps);
    }
}

/// float64 by its name, which may be meant so.
fn explicit(script: &Script<'_>, call: &ExprCall, full: &str, traps: &mut Traps) {
    const COSTS: &str =
        "float64 takes twice the memory of float32, and is many times slower on most GPUs";
    let is_float64 =
        |it: &Expr| path(it).is_some_and(|it| matches!(last(&it), "float64" | "double"));
    let by_default = match full {
        "torch.set_default_dtype" => call.arguments.find_positional(0).is_some_and(is_float64),
        "torch.set_default_tensor_type" => call
            .arguments
            .find_positional(0)
            .is_some_and(|it| script.words(it).contains("DoubleTensor")),
        _ => false,
    };
    let of_model = called(call) == "double"
        && call.arguments.is_empty()
        && receiver(call).is_some_and(|it| script.is_model(it));
    if by_default || of_model {
        traps.note(call, COSTS, "leave it out where the problem does not need it");
    }
}

fn is_float64_array(script: &Script<'_>, expr: &Expr) -> bool {
    match expr {
        Expr::Call(call) => {
            let full = script.full(&call.func).unwrap_or_default();
            let makes = full.starts_with("numpy.") && MAKERS.contains(&last(&full));
            let of_floats = full == "numpy.array"
                && call.arguments.find_positional(0).is_some_and(|it| {
                    script.tree.within(script.tree.id(it)).any(|id| {
                        matches!(script.tree.node(id), AnyNodeRef::ExprNumberLiteral(it)
                            if is_float(&Expr::NumberLiteral(it.clone())))
                    })
                });
            let is_typed = keyword(call, "dtype").is_some()
                || last(&full) == "zeros" && call.arguments.args.len() > 1;
            if (makes || of_floats) && !is_typed {
                // `np.random.random()` without a size is a number.
                return !(full.starts_with("numpy.random.") && call.arguments.is_empty());
            }
            const KEEPING: &[&str] = &["reshape", "copy", "transpose"];
            KEEPING.contains(&called(call))
                && receiver(call).is_some_and(|it| is_float64_array(script, it))
        }
        Expr::Name(name) => {
            script.last_assignment(&name.id, script.tree.id(expr)).is_some_and(|it| {
                it.how == crate::lint::script::How::Whole && is_float64_array(script, it.value)
            })
        }
        Expr::BinOp(it) => {
            is_float64_array(script, &it.left) || is_float64_array(script, &it.right)
        }
        _ => false,
    }
}

/// Whether the tensor is given another type, at once or by the name that it gets.
fn is_cast(script: &Script<'_>, call: Id) -> bool {
    const CASTS: &[&str] = &["float", "half", "bfloat16", "type", "long", "int", "type_as"];
    let casts = |call: &ExprCall| {
        let to_type = || {
            let mut arguments = call
                .arguments
                .args
                .iter()
                .chain(call.arguments.keywords.iter().map(|it| &it.value));
            arguments.any(|it| {
                path(it).is_some_and(|it| {
                    let name = last(&it);
                    name.contains("dtype")
                        || name.starts_with("float")
                        || name.starts_with("bfloat")
                })
            })
        };
        CASTS.contains(&called(call)) || called(call) == "to" && to_type()
    };
    let chained = script
        .tree
        .above(call)
        .take_while(|&id| !script.tree.node(id).is_statement())
        .any(|id| matches!(script.tree.node(id), AnyNodeRef::ExprCall(it) if casts(it)));
    let statement = script.statement(call);
    let mut named = script.assignments.iter().filter(|it| it.id == statement);
    chained
        || named.any(|assignment| {
            script.calls.iter().any(|it| {
                it.id > statement
                    && it.on_path().as_deref() == Some(&assignment.name)
                    && casts(it.node)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{findings, lines};
    use crate::lint::Severity;

    const RULE: &str = "float64";

    #[test]
    fn arrays_of_numpys_default_type_are_found() {
        for made in [
            "x = torch.from_numpy(np.random.rand(100, 3))",
            "x = torch.tensor(np.zeros((100, 3)))",
            "x = torch.as_tensor(np.random.randn(100, 3) * 2)",
            "x = torch.from_numpy(np.linspace(0, 1, 100).reshape(-1, 1))",
            "x = torch.tensor(np.array([0.5, 1.0]))",
            "a = np.ones(3); x = torch.from_numpy(a)",
        ] {
            assert_eq!(
                lines(RULE, &format!("\n{made}\nx = x.cuda()\nf(x).backward()\n")),
                [2],
                "{made}"
            );
        }
    }

    #[test]
    fn other_types_are_fine() {
        for made in [
            "x = torch.from_numpy(np.random.rand(100, 3)).float()",
            "x = torch.from_numpy(np.random.rand(100, 3)).to(device, torch.float32)",
            "x = torch.tensor(np.zeros((100, 3)), dtype=torch.float32)",
            "x = torch.from_numpy(np.zeros((100, 3), dtype=np.float32))",
            "x = torch.from_numpy(np.random.rand(100, 3).astype(np.float32))",
            "x = torch.from_numpy(np.arange(100))",
            "x = torch.tensor(np.array([1, 2]))",
            "x = torch.Tensor(np.zeros(3))",
            "x = torch.from_numpy(images)",
            "x = torch.from_numpy(np.zeros(3)); y = x.float()",
        ] {
            assert!(
                lines(RULE, &format!("\n{made}\nx = x.cuda()\nf(x).backward()\n")).is_empty(),
                "{made}"
            );
        }
        assert!(
            lines(RULE, "\nx = torch.from_numpy(np.random.rand(100, 3))\nf(x).backward()\n")
                .is_empty()
        );
    }

    #[test]
    fn float64_by_name_is_a_note() {
        let found = findings(
            RULE,
            "\ntorch.set_default_dtype(torch.float64)\nmodel.double()\nmask.double()\n",
        );
        assert!(found.iter().all(|it| it.severity == Severity::Note));
        assert_eq!(found.iter().map(|it| it.place.line).collect::<Vec<_>>(), [2, 3]);
    }
}
