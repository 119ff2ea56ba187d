use std::collections::HashSet;

use ruff_python_ast::AnyNodeRef;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::python::called;
use crate::lint::rule::Traps;
use crate::lint::script::{Script, is_accumulation_count};
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V03",
    name: "undivided-loss",
    summary: "a loss that is accumulated over micro-batches and not divided by their number",
    severity: Severity::Warning,
    check,
};

fn check(script: &Script<'_>, traps: &mut Traps) {
    if script.uses("accelerate") || script.uses("deepspeed") {
        return;
    }
    let mut told: HashSet<Id> = HashSet::new();
    for backward in &script.backwards {
        let Some(in_loop) = script.tree.innermost_loop(backward.id) else { continue };
        let accumulates = steps_periodically(script, in_loop, backward.id)
            || counts_micro_batches(script, in_loop);
        if !accumulates
            || backward.by_framework
            || !backward.node.arguments.is_empty()
            || script.is_scaled(backward.loss, backward.function)
            || !told.insert(in_loop)
        {
            continue;
        }
        let loss = script.words(backward.loss);
        traps.warning(
            backward.node,
            format!(
                "the gradients of several micro-batches are summed, and `{loss}` is not divided by their \
                 number: the step is that many times as large"
            ),
            format!("`({loss} / accumulation_steps).backward()`, with the number there is here"),
        );
    }
}

/// Whether each optimizer step of the loop is taken every so many iterations, and gradients are
/// computed in all of them.
fn steps_periodically(script: &Script<'_>, in_loop: Id, backward: Id) -> bool {
    let mut steps = script
        .steps
        .iter()
        .filter(|it| script.tree.innermost_loop(it.id) == Some(in_loop))
        .peekable();
    steps.peek().is_some()
        && steps.all(|it| script.is_periodic(it.id, in_loop))
        && !script.is_periodic(backward, in_loop)
        && !zeroes_each_time(script, in_loop)
}

/// Gradients that are zeroed in each iteration are not accumulated; another rule's matter.
fn zeroes_each_time(script: &Script<'_>, in_loop: Id) -> bool {
    script.zeroings.iter().any(|it| {
        script.tree.innermost_loop(it.id) == Some(in_loop) && !script.is_periodic(it.id, in_loop)
    })
}

/// `for micro_step in range(accumulation_steps)`, with the step after it.
fn counts_micro_batches(script: &Script<'_>, in_loop: Id) -> bool {
    let AnyNodeRef::StmtFor(it) = script.tree.node(in_loop) else { return false };
    let counted = match &*it.iter {
        ruff_python_ast::Expr::Call(call) if called(call) == "range" => script.names_in(&it.iter),
        _ => return false,
    };
    let outer = script.tree.innermost_loop(in_loop);
    let within = script.tree.within(in_loop);
    counted.iter().any(|name| is_accumulation_count(name))
        && !script.steps.iter().any(|step| within.contains(&step.id))
        && script
            .steps
            .iter()
            .any(|step| step.id > in_loop && script.tree.innermost_loop(step.id) == outer)
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "undivided-loss";

    #[test]
    fn a_step_every_so_often_wants_a_divided_loss() {
        let code = "
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
";
        assert_eq!(lines(RULE, code), [4]);
        let through_scaler = code.replace("loss.backward()", "scaler.scale(loss).backward()");
        let through_scaler = through_scaler.replace("optimizer.step()", "scaler.step(optimizer)");
        assert_eq!(lines(RULE, &through_scaler), [4]);
        let by_name = code.replace("    if (i + 1) % 4 == 0", "    last = i % 4 == 3\n    if last");
        assert_eq!(lines(RULE, &by_name), [4]);
    }

    #[test]
    fn an_inner_loop_over_micro_batches_wants_it_too() {
        let code = "
for step in range(100):
    for micro_step in range(gradient_accumulation_steps):
        loss = criterion(model(x), y)
        loss.backward()
    optimizer.step()
";
        assert_eq!(lines(RULE, code), [5]);
    }

    #[test]
    fn a_divided_loss_is_fine_in_every_form() {
        for divided in [
            "loss = criterion(model(x), y) / 4; loss.backward()",
            "loss = criterion(model(x), y); loss = loss / n; loss.backward()",
            "loss = criterion(model(x), y); loss /= n; loss.backward()",
            "loss = criterion(model(x), y); (loss / n).backward()",
            "loss = criterion(model(x), y); scaler.scale(loss / n).backward()",
            "loss = criterion(model(x), y); (loss * 0.25).backward()",
            "loss = criterion(model(x), y); loss.div(n).backward()",
        ] {
            let code = format!(
                "
for i, (x, y) in enumerate(loader):
    {divided}
    if i % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
"
            );
            assert!(lines(RULE, &code).is_empty(), "{divided}");
        }
    }

    #[test]
    fn a_second_optimizer_that_steps_less_often_is_no_accumulation() {
        let code = "
for i, x in enumerate(loader):
    optimizer_d.zero_grad()
    loss_d = critic(x)
    loss_d.backward()
    optimizer_d.step()
    if i % n_critic == 0:
        optimizer_g.zero_grad()
        loss_g = critic(g(x))
        loss_g.backward()
        optimizer_g.step()
";
        assert!(lines(RULE, code).is_empty());
    }
}
