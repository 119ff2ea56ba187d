use std::collections::HashSet;

use super::Rule;
use crate::lint::finding::Severity;
use crate::lint::rule::Traps;
use crate::lint::script::{Script, is_accumulation_count};
use crate::lint::tree::Id;

pub(super) const RULE: Rule = Rule {
    number: "V05",
    name: "step-each-micro-batch",
    summary: "an optimizer that steps at each micro-batch although gradients are to be accumulated",
    severity: Severity::Warning,
    check,
};

/// Libraries whose optimizers skip the step by themselves, or are told the count.
const STEP_BY_THEMSELVES: &[&str] =
    &["accelerate", "deepspeed", "lightning", "pytorch_lightning", "lightning_fabric"];

/// Conditions on these do not say which micro-batch it is.
const NOT_A_COUNT: &[&str] =
    &["scaler", "amp", "fp16", "half", "clip", "none", "mixed", "precision", "nan"];

fn check(script: &Script<'_>, traps: &mut Traps) {
    if STEP_BY_THEMSELVES.iter().any(|library| script.uses(library)) {
        return;
    }
    let mut told: HashSet<Id> = HashSet::new();
    for step in &script.steps {
        let Some(in_loop) = script.tree.innermost_loop(step.id) else { continue };
        let Some(count) = divides_by(script, in_loop) else { continue };
        let conditions = script.names_of_conditions(step.id, in_loop);
        let is_each_time = conditions.iter().all(|name| {
            let name = name.to_lowercase();
            NOT_A_COUNT.iter().any(|it| name.contains(it))
        }) && !script.is_periodic(step.id, in_loop);
        let others_wait = script.steps.iter().any(|it| {
            it.name == step.name
                && script.tree.innermost_loop(it.id) == Some(in_loop)
                && script.is_periodic(it.id, in_loop)
        });
        if is_each_time && !others_wait && told.insert(in_loop) {
            traps.warning(
                &script.tree.node(step.id),
                format!(
                    "`{}` steps at each micro-batch, though the loss is divided by `{count}`: nothing is \
                     accumulated, and the steps are too small",
                    step.name
                ),
                format!("`if (i + 1) % {count} == 0:` around the step and `zero_grad`"),
            );
        }
    }
}

/// The accumulation count that the loss of a loop is divided by, where gradients are computed in the
/// loop itself.
fn divides_by(script: &Script<'_>, in_loop: Id) -> Option<String> {
    let mut backwards = script
        .backwards_in(in_loop)
        .filter(|it| !it.by_framework && script.tree.innermost_loop(it.id) == Some(in_loop));
    let backward = backwards.next()?;
    let names = script.sources(backward.function, script.names_in(backward.loss));
    let is_of_loop = |id| script.tree.within(in_loop).contains(&id);
    let mut counts: Vec<_> = names
        .into_iter()
        .filter(|name| is_accumulation_count(name))
        .filter(|name| {
            let of_loss = script.names_in(backward.loss).contains(name);
            of_loss
                || script.assignments.iter().any(|it| {
                    is_of_loop(it.id)
                        && it.name.contains("loss")
                        && script.names_in(it.value).contains(name)
                })
        })
        .collect();
    counts.sort_by_key(|name| std::cmp::Reverse(name.len()));
    counts.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::super::testing::lines;

    const RULE: &str = "step-each-micro-batch";

    #[test]
    fn a_divided_loss_wants_a_step_every_so_often() {
        let code = "
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    loss = loss / args.accumulation_steps
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
";
        assert_eq!(lines(RULE, code), [6]);
        let scaled = code
            .replace("    optimizer.step()", "    if scaler is not None: scaler.step(optimizer)");
        assert_eq!(lines(RULE, &scaled), [6]);
    }

    #[test]
    fn a_step_that_waits_is_fine() {
        let code = "
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / accum_steps
    loss.backward()
    if (i + 1) % accum_steps == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
for step in range(100):
    for micro_step in range(accum_steps):
        loss = criterion(model(x), y) / accum_steps
        loss.backward()
    optimizer.step()
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / accum_steps
    loss.backward()
    if should_step:
        optimizer.step()
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / accum_steps
    loss.backward()
    if i % accum_steps != 0:
        continue
    optimizer.step()
";
        assert!(lines(RULE, code).is_empty());
    }

    #[test]
    fn without_a_count_or_with_accelerate_it_is_fine() {
        let plain = "
for x, y in loader:
    loss = criterion(model(x), y) / len(x)
    loss.backward()
    optimizer.step()
";
        assert!(lines(RULE, plain).is_empty());
        let accelerate = "; from accelerate import Accelerator
for x, y in loader:
    loss = criterion(model(x), y) / gradient_accumulation_steps
    loss.backward()
    optimizer.step()
";
        assert!(lines(RULE, accelerate).is_empty());
    }
}
