use std::cmp::Reverse;

use crate::plan::{Choice, Objective, Step};
use crate::workload::Checkpointing;

/// Puts the best choice first. `mixed_pays` tells whether the GPU computes faster in 16 bits.
pub(super) fn sort(choices: &mut [Choice], objective: Objective, mixed_pays: bool) {
    match objective {
        // A percent is below what a few steps can tell apart.
        Objective::Throughput
            if choices.iter().all(|choice| choice.samples_per_second.is_some()) =>
        {
            choices.sort_by_key(|choice| {
                let speed = choice.samples_per_second.unwrap_or_default();
                (
                    Reverse((speed.ln() * 100.0).round() as i64),
                    recomputation(choice.checkpointing),
                    choice.precision,
                    choice.memory.device_peak,
                )
            });
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
