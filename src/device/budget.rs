use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::units::Bytes;

/// What is held back of a board of `total` bytes where nothing is stated: 5 % and at least 200 MiB;
/// without a display, so that no desktop can grow on it, 3 % and at least 128 MiB.
pub fn default_margin(total: Bytes, display: bool) -> Bytes {
    if display {
        total.percent(5.0).max(Bytes::mib(200))
    } else {
        total.percent(3.0).max(Bytes::mib(128))
    }
}

/// What may be used of a GPU, and what became of the rest, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Memory on the board: NVML's total.
    pub total: Bytes,
    /// Of it what CUDA programs can have at all: less the driver's own reserve.
    pub usable: Bytes,
    /// Held by other processes when the plan was made. Zero on a virtual GPU.
    pub held_by_others: Bytes,
    /// Set aside by the user for what will come, a desktop for instance.
    pub reserve: Bytes,
    /// Held back so that the plan still holds on a less quiet day.
    pub margin: Bytes,
    /// What is left: a point fits when its process stays within this.
    pub budget: Bytes,
}

impl Budget {
    /// Works the budget out: `usable − held_by_others − reserve − margin`.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn new(
        total: Bytes,
        usable: Bytes,
        held_by_others: Bytes,
        reserve: Bytes,
        margin: Bytes,
    ) -> Result<Self, Error> {
        let held = held_by_others + reserve + margin;
        let budget = usable.saturating_sub(held);
        if budget == Bytes::ZERO {
            return Err(ErrorKind::NoBudget { usable, held_by_others, reserve, margin }.into());
        }
        Ok(Self { total, usable, held_by_others, reserve, margin, budget })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ExitStatus;

    #[test]
    fn the_default_margin_is_smaller_without_a_display() {
        assert_eq!(default_margin(Bytes::gib(4), true), Bytes(214_748_364));
        assert_eq!(default_margin(Bytes::gib(2), true), Bytes::mib(200));
        assert_eq!(default_margin(Bytes::gib(4), false), Bytes::mib(128));
    }

    #[test]
    fn a_budget_is_what_everything_else_leaves() {
        let mib = Bytes::mib;
        let budget = Budget::new(mib(4096), mib(3770), mib(100), mib(600), mib(205));
        assert_eq!(budget.map(|budget| budget.budget).ok(), Some(mib(2865)));
        let status = |held, reserve| {
            let budget = Budget::new(mib(4096), mib(3770), mib(held), mib(reserve), mib(205));
            budget.err().map(|error| error.status())
        };
        assert_eq!(status(3500, 100), Some(ExitStatus::DoesNotFit), "others hold it");
        assert_eq!(status(0, 3600), Some(ExitStatus::BadInput), "the flags leave nothing");
    }
}
