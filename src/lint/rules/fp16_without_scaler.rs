use ruff_python_ast::Expr;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::{is_false, keyword, last, path, string};
use crate::lint::rule::Traps;
use crate::lint::script::{Call, Gradients, Script};

pub(super) const RULE: Rule = Rule {
    number: "V04",
    name: "fp16-without-scaler",
    summary: "training under autocast to fp16 without a GradScaler",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    let is_scaled = script.mentions(|name| name.to_lowercase().contains("scaler"));
    let by_framework = script.backwards.iter().all(|it| it.by_framework);
    if is_scaled || by_framework {
        return;
    }
    let autocasts = script.calls.iter().filter(|call| call.name() == "autocast");
    for call in autocasts {
        if is_fp16(call, script)
            && script.gradients(call.id) == Gradients::On
            && !is_evaluation(script, call)
        {
            traps.warning(
                call.node,
                "gradients in fp16 below 6e-8 become zero, and there is no GradScaler against it",
                "`torch.amp.GradScaler(\"cuda\")` around `backward` and `step`, or `dtype=torch.bfloat16`, \
                 which needs none, where the GPU has it",
            );
            return;
        }
    }
}

/// Whether it casts to fp16, by its words or by default: on a GPU the default is fp16.
fn is_fp16(call: &Call<'_>, script: &Script<'_>) -> bool {
    if keyword(call.node, "enabled").is_some_and(is_false) {
        return false;
    }
    let full = script.full(&call.node.func).unwrap_or_default();
    let of_cuda = full.starts_with("torch.cuda.amp");
    let device = match of_cuda {
        true => None,
        false => call.argument(0).or_else(|| keyword(call.node, "device_type")),
    };
    let at = usize::from(!of_cuda);
    let dtype = keyword(call.node, "dtype").or_else(|| call.argument(at));
    match dtype {
        Some(dtype) if !of_cuda || keyword(call.node, "dtype").is_some() => {
            path(dtype).is_some_and(|it| matches!(last(&it), "float16" | "half"))
        }
        _ => of_cuda || device.and_then(string).is_some_and(|it| it.starts_with("cuda")),
    }
}

fn is_evaluation(script: &Script<'_>, call: &Call<'_>) -> bool {
    script.named_function(call.id).is_some_and(|(id, function)| {
        script.is_called_evaluation(function) || !script.trains_in(id)
    }) || matches!(call.on(), Some(Expr::Name(it)) if it.id == "accelerator")
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "fp16-without-scaler";

    fn training(autocast: &str) -> String {
        format!(
            "
for x, y in loader:
    with {autocast}:
        loss = criterion(model(x), y)
    loss.backward()
"
        )
    }

    #[test]
    fn fp16_by_word_or_default_wants_a_scaler() {
        for autocast in [
            "torch.autocast('cuda', dtype=torch.float16)",
            "torch.autocast('cuda', torch.float16)",
            "torch.autocast('cuda')",
            "torch.autocast(device_type='cuda')",
            "torch.cuda.amp.autocast()",
            "torch.cuda.amp.autocast(enabled=amp)",
        ] {
            assert_eq!(lines(RULE, &training(autocast)), [3], "{autocast}");
        }
    }

    #[test]
    fn bf16_another_device_or_an_unknown_type_is_fine() {
        for autocast in [
            "torch.autocast('cuda', dtype=torch.bfloat16)",
            "torch.autocast('cuda', torch.bfloat16)",
            "torch.autocast('cpu')",
            "torch.autocast(device_type=device)",
            "torch.autocast('cuda', dtype=dtype)",
            "torch.cuda.amp.autocast(dtype=torch.bfloat16)",
            "torch.cuda.amp.autocast(enabled=False)",
        ] {
            assert!(lines(RULE, &training(autocast)).is_empty(), "{autocast}");
        }
    }

    #[test]
    fn a_scaler_or_an_inference_is_fine() {
        let scaled =
            format!("{}scaler = torch.amp.GradScaler()\n", training("torch.autocast('cuda')"));
        assert!(lines(RULE, &scaled).is_empty());
        let inference = "
def generate(model):
    with torch.autocast('cuda'):
        return model(x)
loss.backward()
";
        assert!(lines(RULE, inference).is_empty());
    }
}
