use ruff_python_ast::AnyNodeRef;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::last;
use crate::lint::rule::Traps;
use crate::lint::script::{OnOptimizer, Script};
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V06",
    name: "misplaced-zero-grad",
    summary: "gradients that are zeroed between backward and step, at each micro-batch, or never",
    severity: Severity::Error,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    for zeroing in &script.zeroings {
        let Some(in_loop) = script.tree.innermost_loop(zeroing.id) else { continue };
        if let Some(step) = follows_at_once(script, zeroing, in_loop) {
            traps.error(
                &script.tree.node(zeroing.id),
                format!(
                    "the gradients are zeroed after `backward` and before `{}.step()`, which learns nothing",
                    step.name
                ),
                "zero them after the step, or before the forward",
            );
        } else if undoes_accumulation(script, zeroing, in_loop) {
            traps.error(
                &script.tree.node(zeroing.id),
                format!(
                    "`{}.zero_grad()` at each micro-batch throws away what the step, taken every so many \
                     of them, is to sum up",
                    zeroing.name
                ),
                "zero the gradients where the optimizer steps",
            );
        }
    }
    never(script, traps);
}

/// The step that comes after the zeroing with no gradients computed between, but before it.
fn follows_at_once<'s>(
    script: &'s Script<'_>,
    zeroing: &OnOptimizer,
    in_loop: Id,
) -> Option<&'s OnOptimizer> {
    let is_beside = |id: Id| {
        script.tree.innermost_loop(id) == Some(in_loop)
            && !script.tree.exclude_each_other(id, zeroing.id)
    };
    // What is zeroed conditionally may be meant for some iterations alone.
    if script.tree.conditions(zeroing.id, in_loop).next().is_some() {
        return None;
    }
    let backwards = || script.backwards.iter().filter(|it| is_beside(it.id));
    let step = script.steps.iter().find(|it| it.id > zeroing.id && is_beside(it.id))?;
    let is_same =
        step.name == zeroing.name || !script.steps.iter().any(|it| it.name == zeroing.name);
    let between = script.backwards.iter().any(|it| (zeroing.id..step.id).contains(&it.id));
    let another_step = script.steps.iter().any(|it| {
        is_beside(it.id) && it.id < zeroing.id && backwards().all(|backward| backward.id < it.id)
    });
    // A function in between may compute them, as a closure does.
    let calls_between = script.calls.iter().any(|call| {
        (zeroing.id + 1..step.id).contains(&call.id) && call.name().contains("backward")
    });
    (is_same
        && !between
        && !another_step
        && !calls_between
        && backwards().any(|it| it.id < zeroing.id))
    .then_some(step)
}

/// Zeroed in each iteration, stepped every so many, though gradients are computed in each.
fn undoes_accumulation(script: &Script<'_>, zeroing: &OnOptimizer, in_loop: Id) -> bool {
    if script.uses("accelerate") || script.tree.conditions(zeroing.id, in_loop).next().is_some() {
        return false;
    }
    let beside = |id: Id| script.tree.innermost_loop(id) == Some(in_loop);
    let is_optimizer = script.steps.iter().any(|it| it.name == zeroing.name);
    let mut steps = script
        .steps
        .iter()
        .filter(|it| beside(it.id) && (!is_optimizer || it.name == zeroing.name))
        .peekable();
    steps.peek().is_some()
        && steps.all(|it| script.is_periodic(it.id, in_loop))
        && !script.skips(zeroing.id, in_loop)
        && script.backwards.iter().any(|it| beside(it.id) && !script.is_periodic(it.id, in_loop))
}

/// A loop that computes gradients and steps in a script that nowhere zeroes them.
fn never(script: &Script<'_>, traps: &mut Traps) {
    let zeroes = |name: &str| {
        let name = name.to_lowercase();
        name.contains("zero_grad") || name.contains("zerograd") || name == "set_to_none"
    };
    let by_hand = script.assignments.iter().any(|it| last(&it.name) == "grad")
        || script.calls.iter().any(|call| {
            call.name() == "zero_" && call.on_path().is_some_and(|it| it.contains("grad"))
        });
    if script.mentions(zeroes) || by_hand || script.uses("deepspeed") {
        return;
    }
    for in_loop in script.training_loops() {
        let backward = script.backwards_in(in_loop).find(|it| !it.by_framework);
        let step =
            script.steps.iter().find(|it| script.tree.innermost_loop(it.id) == Some(in_loop));
        // One turn is no loop, and a closure does it elsewhere.
        let takes_closure = step.is_some_and(|it| {
            matches!(script.tree.node(it.id), AnyNodeRef::ExprCall(call) if call.arguments.args.iter().any(
                |it| matches!(it, ruff_python_ast::Expr::Name(name) if name.id.contains("closure"))
            ))
        });
        if let (Some(backward), Some(step), false) = (backward, step, takes_closure) {
            traps.error(
                backward.node,
                format!(
                    "gradients are summed over all iterations: nothing zeroes those of `{}`",
                    step.name
                ),
                format!("`{}.zero_grad()` after the step", step.name),
            );
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "misplaced-zero-grad";

    fn training(body: &str) -> String {
        let body = body.replace('\n', "\n    ");
        format!("\nfor i, (x, y) in enumerate(loader):\n    {body}\n")
    }

    #[test]
    fn zeroing_between_backward_and_step_is_found() {
        let code = training("loss.backward()\noptimizer.zero_grad()\noptimizer.step()");
        assert_eq!(lines(RULE, &code), [4]);
        let on_model = training("loss.backward()\nmodel.zero_grad()\nscaler.step(optimizer)");
        assert_eq!(lines(RULE, &on_model), [4]);
    }

    #[test]
    fn the_usual_orders_are_fine() {
        for body in [
            "optimizer.zero_grad()\nloss.backward()\noptimizer.step()",
            "loss.backward()\noptimizer.step()\noptimizer.zero_grad()",
            "loss.backward()\nif i % 4 == 3:\n    optimizer.step()\n    optimizer.zero_grad()",
            "if i % 4 == 0:\n    optimizer.zero_grad()\nloss.backward()\nif i % 4 == 3:\n    optimizer.step()",
            "d_loss.backward()\nopt_d.step()\ng.zero_grad()\ng_loss.backward()\nopt_g.step()\nopt_d.zero_grad()",
            "loss.backward()\nif a:\n    optimizer.zero_grad()\nelse:\n    optimizer.step()",
            "loss.backward()\nfor p in model.parameters():\n    p.grad = None",
            "loss.backward()\noptimizer.step()\noptimizer.zero_grad()\nif clip:\n    optimizer.step()",
        ] {
            assert!(lines(RULE, &training(body)).is_empty(), "{body}");
        }
    }

    #[test]
    fn zeroing_at_each_micro_batch_is_found() {
        let code = training(
            "optimizer.zero_grad()\nloss.backward()\nif i % 4 == 3:\n    optimizer.step()",
        );
        assert_eq!(lines(RULE, &code), [3]);
        let two = training(
            "opt_d.zero_grad()\nd_loss.backward()\nopt_d.step()\nif i % 5 == 0:\n    opt_g.zero_grad()\n    \
             g_loss.backward()\n    opt_g.step()",
        );
        assert!(lines(RULE, &two).is_empty());
    }

    #[test]
    fn never_zeroing_is_found() {
        assert_eq!(lines(RULE, &training("loss.backward()\noptimizer.step()")), [3]);
        assert!(lines(RULE, &training("loss.backward()\noptimizer.step(closure)")).is_empty());
    }
}
