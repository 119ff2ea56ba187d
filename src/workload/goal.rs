use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the micro-batches of all GPUs have to add up to in one optimizer step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Samples in one optimizer step over all GPUs; a multiple of `world_size`.
    pub target_batch: u32,
    /// GPUs that share them evenly.
    pub world_size: u32,
    /// The last micro-batch of a step may be smaller than the others.
    pub ragged: bool,
}

impl Goal {
    /// Samples that one GPU goes through in one optimizer step.
    pub fn per_gpu(&self) -> u32 {
        self.target_batch / self.world_size
    }

    /// The admissible micro-batches, ascending: the divisors of [`Self::per_gpu`], or with `ragged`
    /// everything up to it.
    pub fn micro_batches(&self) -> Vec<u32> {
        let whole = self.per_gpu();
        (1..=whole).filter(|size| self.ragged || whole.is_multiple_of(*size)).collect()
    }

    /// How often a micro-batch is accumulated, and what is left for a smaller last one.
    pub fn split(&self, micro_batch: u32) -> (u32, Option<u32>) {
        let whole = self.per_gpu();
        (whole / micro_batch, Some(whole % micro_batch).filter(|rest| *rest > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_batches_divide_what_one_gpu_gets() {
        let goal = Goal { target_batch: 96, world_size: 2, ragged: false };
        assert_eq!(goal.micro_batches(), [1, 2, 3, 4, 6, 8, 12, 16, 24, 48]);
        assert_eq!(goal.split(12), (4, None));
    }

    #[test]
    fn a_ragged_split_leaves_a_smaller_last_micro_batch() {
        let goal = Goal { target_batch: 64, world_size: 1, ragged: true };
        assert_eq!(goal.micro_batches().len(), 64);
        assert_eq!(goal.split(12), (5, Some(4)));
        assert_eq!(goal.split(64), (1, None));
    }
}
