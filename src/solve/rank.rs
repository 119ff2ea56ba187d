use std::cmp::{Ordering, Reverse};

use crate::plan::{Choice, Objective, Speed, SpeedBasis, Step};
use crate::workload::Checkpointing;

/// Puts the best choice first. `mixed_pays` tells whether the GPU computes faster in 16 bits; it matters
/// where times are not measured.
pub(super) fn sort(choices: &mut [Choice], objective: Objective, mixed_pays: bool) {
    match objective {
        Objective::Throughput if are_timed(choices) => {
            by_speed(choices);
            // What 16 bits save in memory traffic is not worth their numerical risk where nothing but a
            // model tells that they are faster.
            if !mixed_pays && choices.iter().any(is_modelled) {
                choices.sort_by_key(|choice| choice.precision.is_mixed());
            }
        }
        Objective::Throughput => choices.sort_by_key(|choice| {
            let step = careful_step(choice);
            let climbed = step >= Step::Accumulation && mixed_pays;
            (
                step,
                recomputation(choice.checkpointing),
                climbed && !choice.precision.is_mixed(),
                choice.accumulation,
                choice.precision,
                choice.memory.device_peak,
            )
        }),
        Objective::MicroBatch => choices.sort_by_key(|choice| {
            (
                Reverse(choice.micro_batch),
                recomputation(choice.checkpointing),
                choice.precision,
                choice.memory.device_peak,
            )
        }),
        Objective::Memory => choices.sort_by_key(|choice| {
            (
                choice.memory.device_peak,
                recomputation(choice.checkpointing),
                choice.accumulation,
                choice.precision,
            )
        }),
    }
}

fn is_modelled(choice: &Choice) -> bool {
    choice.speed.as_ref().is_some_and(|speed| speed.basis == SpeedBasis::Modelled)
}

/// Whether all speeds are known, and in the same way: a modelled one says nothing against a measured one.
pub(super) fn are_timed(choices: &[Choice]) -> bool {
    let basis = |choice: &Choice| choice.speed.as_ref().map(|speed| speed.basis);
    let first = choices.first().and_then(basis);
    first.is_some() && choices.iter().all(|choice| basis(choice) == first)
}

/// The fastest first. Choices whose speed ties with the fastest of their group are in the careful
/// person's order: what computes nothing twice, then less numerical risk, fewer steps, less memory.
fn by_speed(choices: &mut [Choice]) {
    choices.sort_by(faster);
    let mut rest = choices;
    while let Some(fastest) = rest.first() {
        let tie = fastest.speed.as_ref().map_or(0.0, Speed::tie);
        let equal = rest.iter().take_while(|choice| samples_per_second(choice) >= tie).count();
        let (group, slower) = rest.split_at_mut(equal.max(1));
        group.sort_by_key(|choice| {
            (
                recomputation(choice.checkpointing),
                choice.precision,
                micro_steps(choice),
                choice.memory.device_peak,
            )
        });
        rest = slower;
    }
}

/// What memory buys: of `choices` those that are faster than each that takes less, or as much, by more
/// than counts as equal; the least memory first.
pub(super) fn pareto(mut choices: Vec<Choice>) -> Vec<Choice> {
    if !are_timed(&choices) {
        return Vec::new();
    }
    choices
        .sort_by(|a, b| a.memory.device_peak.cmp(&b.memory.device_peak).then_with(|| faster(a, b)));
    let mut front: Vec<Choice> = Vec::new();
    for choice in choices {
        let tie = choice.speed.as_ref().map_or(0.0, Speed::tie);
        if front.last().is_none_or(|last| samples_per_second(last) < tie) {
            front.push(choice);
        }
    }
    front
}

fn faster(a: &Choice, b: &Choice) -> Ordering {
    samples_per_second(b).total_cmp(&samples_per_second(a))
}

fn samples_per_second(choice: &Choice) -> f64 {
    choice.speed.as_ref().map_or(0.0, |speed| speed.samples_per_second.value)
}

/// Micro-steps in one optimizer step, the smaller last one too.
fn micro_steps(choice: &Choice) -> u32 {
    choice.accumulation + u32::from(choice.remainder.is_some())
}

/// The step of the careful person's ladder on which a choice stands. Each step keeps those before it:
/// who accumulates has gone over to mixed precision first.
fn careful_step(choice: &Choice) -> Step {
    if matches!(choice.checkpointing, Checkpointing::Blocks(_)) {
        Step::SelectiveCheckpointing
    } else if choice.checkpointing.is_on() {
        Step::Checkpointing
    } else if choice.accumulation > 1 || choice.remainder.is_some() {
        Step::Accumulation
    } else if choice.precision.is_mixed() {
        Step::MixedPrecision
    } else {
        Step::Plain
    }
}

/// Grows with how much of the forward pass is computed twice.
pub fn recomputation(checkpointing: Checkpointing) -> (u8, u32) {
    match checkpointing {
        Checkpointing::None | Checkpointing::AsIs => (0, 0),
        Checkpointing::Blocks(blocks) => (1, blocks.count()),
        Checkpointing::Every(n) => (2, u32::MAX - n),
        Checkpointing::Full => (3, 0),
    }
}
