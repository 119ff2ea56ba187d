use std::cmp::Reverse;

use crate::plan::{Choice, Objective};
use crate::workload::Checkpointing;

/// Puts the best choice first.
pub(super) fn sort(choices: &mut [Choice], objective: Objective) {
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
            (
                recomputation(choice.checkpointing),
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

/// Grows with how much of the forward pass is computed twice.
pub fn recomputation(checkpointing: Checkpointing) -> (u8, Reverse<u32>) {
    match checkpointing {
        Checkpointing::None => (0, Reverse(0)),
        Checkpointing::Every(n) => (1, Reverse(n)),
        Checkpointing::Full => (2, Reverse(0)),
    }
}
