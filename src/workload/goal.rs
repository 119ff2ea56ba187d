use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

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

/// Samples that one GPU may go through in one optimizer step at most: far beyond any batch in use,
/// and few enough that every micro-batch can be listed.
pub const MOST_PER_GPU: u32 = 1 << 20;

impl Goal {
    /// A target that the GPUs can share, and not beyond [`MOST_PER_GPU`] for each.
    ///
    /// # Errors
    /// When it is not: nothing else of a goal may be asked then.
    pub fn new(target_batch: u32, world_size: u32, ragged: bool) -> Result<Self, Error> {
        let goal = Self { target_batch, world_size, ragged };
        let (target, most) = (target_batch, MOST_PER_GPU);
        if target == 0 || world_size == 0 || target % world_size != 0 {
            return Err(ErrorKind::UnevenTarget { target, world_size }.into());
        }
        if goal.per_gpu() > MOST_PER_GPU {
            return Err(ErrorKind::TargetTooLarge { target, per_gpu: goal.per_gpu(), most }.into());
        }
        Ok(goal)
    }

    /// Samples that one GPU goes through in one optimizer step.
    pub fn per_gpu(&self) -> u32 {
        self.target_batch / self.world_size
    }

    /// The admissible micro-batches, ascending: the divisors of [`Self::per_gpu`], or with `ragged`
    /// everything up to it.
    pub fn micro_batches(&self) -> Vec<u32> {
        let whole = self.per_gpu();
        if self.ragged {
            return (1..=whole).collect();
        }
        let mut sizes: Vec<u32> = (1..=whole.isqrt())
            .filter(|size| whole.is_multiple_of(*size))
            .flat_map(|size| [size, whole / size])
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
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
    fn a_square_has_its_root_once() {
        let goal = Goal { target_batch: 36, world_size: 1, ragged: false };
        assert_eq!(goal.micro_batches(), [1, 2, 3, 4, 6, 9, 12, 18, 36]);
    }

    #[test]
    fn a_goal_that_cannot_be_shared_or_counted_is_refused() {
        for (target, world_size) in [(0, 1), (64, 0), (2, 4), (MOST_PER_GPU + 1, 1), (u32::MAX, 1)]
        {
            assert!(Goal::new(target, world_size, true).is_err(), "{target} over {world_size}");
        }
        assert!(Goal::new(MOST_PER_GPU * 2, 2, true).is_ok());
    }

    #[test]
    fn a_ragged_split_leaves_a_smaller_last_micro_batch() {
        let goal = Goal { target_batch: 64, world_size: 1, ragged: true };
        assert_eq!(goal.micro_batches().len(), 64);
        assert_eq!(goal.split(12), (5, Some(4)));
        assert_eq!(goal.split(64), (1, None));
    }
}
