//! What a plan must be, beyond being well formed: whoever reads one divides by its numbers.

use super::{ALLOCATOR_VARIABLES, Choice, LongestContext, Note, Plan};
use crate::workload::{Checkpointing, Command, Goal};

/// The first contradiction in the plan, in words, if there is one.
pub(super) fn contradiction(plan: &Plan) -> Option<String> {
    let Goal { target_batch, world_size, ragged } = plan.goal;
    if let Err(error) = Goal::new(target_batch, world_size, ragged) {
        return Some(error.to_string());
    }
    if let Some(model) = plan.workload.subject.built_in()
        && let Some(reason) = model.contradiction()
    {
        return Some(format!("its model: {reason}"));
    }
    if let Some(Command { words, folder, vary }) = plan.workload.subject.command()
        && let Err(error) = Command::new(words.clone(), folder.clone(), vary.clone())
    {
        return Some(error.to_string());
    }
    if let Err(error) = plan.workload.check_sequence() {
        return Some(error.to_string());
    }
    if let Some(clipping) = plan.workload.gradient_clipping
        && !(clipping.is_finite() && clipping > 0.0)
    {
        return Some(format!("`gradient_clipping` of {clipping} is not above zero"));
    }
    let budget = plan.budget;
    if budget.total.0 > i64::MAX as u64
        || budget.usable > budget.total
        || budget.reserve > budget.usable
        || budget.margin > budget.usable
        || budget.budget > budget.usable
    {
        return Some("its budget does not add up".to_owned());
    }
    // They end up in the user's environment.
    let unknown = plan.notes.iter().find_map(|note| match note {
        Note::AllocatorVariable { variable, .. }
            if !ALLOCATOR_VARIABLES.contains(&variable.as_str()) =>
        {
            Some(variable)
        }
        _ => None,
    });
    if let Some(variable) = unknown {
        return Some(format!("`{variable}` is no variable of PyTorch's allocator"));
    }
    let at_other_lengths = plan.contexts.iter().flat_map(|it| &it.lengths);
    let mut choices = plan
        .recommendation
        .iter()
        .chain(&plan.alternatives)
        .chain(&plan.pareto)
        .chain(at_other_lengths.filter_map(|it| it.choice.as_ref()));
    choices.find_map(|choice| of_choice(choice, plan)).or_else(|| {
        plan.contexts.iter().flat_map(|it| &it.longest).find_map(|it| of_longest(it, plan))
    })
}

fn of_longest(longest: &LongestContext, plan: &Plan) -> Option<String> {
    let next = longest.next.map(|next| next.evidence);
    missing(longest.evidence.into_iter().chain(next), plan)
}

fn of_choice(choice: &Choice, plan: &Plan) -> Option<String> {
    let Choice { micro_batch, accumulation, remainder, effective_batch, .. } = *choice;
    let (goal, whole) = (plan.goal, plan.goal.per_gpu());
    if micro_batch == 0 || micro_batch > whole {
        return Some(format!("a micro-batch of {micro_batch} is not from 1 to {whole}"));
    }
    if !goal.ragged && whole % micro_batch != 0 {
        return Some(format!("a micro-batch of {micro_batch} does not divide {whole}"));
    }
    if (accumulation, remainder) != goal.split(micro_batch) || effective_batch != goal.target_batch
    {
        return Some(format!(
            "micro-batches of {micro_batch} do not add up to the target as stated"
        ));
    }
    if matches!(choice.checkpointing, Checkpointing::Every(0 | 1)) {
        return Some("checkpointing every block is `full`, not `every`".to_owned());
    }
    if matches!(choice.checkpointing, Checkpointing::Blocks(blocks) if blocks.count() == 0) {
        return Some("checkpointing no block is `none`, not `blocks`".to_owned());
    }
    let next = choice.next.map(|next| next.evidence);
    missing(std::iter::once(choice.evidence).chain(next), plan)
}

fn missing(mut evidence: impl Iterator<Item = usize>, plan: &Plan) -> Option<String> {
    let known = plan.measurements.len();
    let missing = evidence.find(|index| *index >= known)?;
    Some(format!("evidence {missing} is none of its {known} measurements"))
}
