//! When something does not fit: the smallest change with which it does, found by trying.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Prober;
use crate::error::Error;
use crate::measurement::{Point, Setting, Verdict};
use crate::profile::gpu::GpuProfile;
use crate::units::Bytes;
use crate::workload::{Checkpointing, Optimizer, OptimizerImplementation, Precision, Workload};

/// Sequences below this are not offered: hardly anybody trains on less.
const SHORTEST_SEQUENCE: u32 = 64;

/// One change to what was asked for, with which it was tried and fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A smaller micro-batch.
    MicroBatch(u32),
    /// Another way to carry out the optimizer's step; the result is the same.
    OptimizerImplementation(OptimizerImplementation),
    /// Mixed precision.
    Precision(Precision),
    /// Checkpointed activations.
    Checkpointing(Checkpointing),
    /// Both.
    Setting(Setting),
    /// Shorter samples, in tokens.
    Sequence(u32),
    /// An optimizer with less state.
    Optimizer(Optimizer),
    /// A card with more memory.
    Gpu(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MicroBatch(size) => write!(f, "a micro-batch of {size}"),
            Self::OptimizerImplementation(OptimizerImplementation::Fused) => {
                write!(f, "a fused optimizer step (`fused=True`)")
            }
            Self::OptimizerImplementation(OptimizerImplementation::ForLoop) => {
                write!(f, "an optimizer step parameter by parameter (`foreach=False`)")
            }
            Self::OptimizerImplementation(OptimizerImplementation::Foreach) => {
                write!(f, "PyTorch's default optimizer step")
            }
            Self::Precision(precision) => write!(f, "{precision} precision"),
            Self::Checkpointing(checkpointing) => write!(f, "checkpointing {checkpointing}"),
            Self::Setting(Setting { precision, checkpointing }) => {
                write!(f, "{precision} precision with checkpointing {checkpointing}")
            }
            Self::Sequence(tokens) => write!(f, "a sequence of {tokens} tokens"),
            Self::Optimizer(optimizer) => write!(f, "the optimizer {optimizer}"),
            Self::Gpu(name) => write!(f, "the card {name}"),
        }
    }
}

/// Looks for changes with which a point fits that does not.
#[derive(Clone, Copy, Debug)]
pub struct Remedies<'a> {
    /// What is trained.
    pub workload: &'a Workload,
    /// What does not fit.
    pub point: Point,
    /// Mixed precisions that the card has in hardware.
    pub mixed: &'a [Precision],
    /// What may be used.
    pub budget: Bytes,
}

impl Remedies<'_> {
    /// Changes on the same card that were tried and fit, least intrusive first, at most `most`.
    ///
    /// # Errors
    /// As [`Prober::probe`].
    pub fn on_this_card(&self, prober: &mut dyn Prober, most: usize) -> Result<Vec<Change>, Error> {
        let mut found = Vec::new();
        for change in self.candidates() {
            if found.len() == most {
                break;
            }
            // A shorter sequence is offered once, the longest that fits.
            let shorter = |change: &Change| matches!(change, Change::Sequence(_));
            if shorter(&change) && found.iter().any(shorter) {
                continue;
            }
            let (workload, point) = self.apply(&change);
            if prober.probe(&workload, point)?.verdict(self.budget) == Verdict::Fits {
                found.push(change);
            }
        }
        Ok(found)
    }

    /// The smallest card of `cards`, ascending by memory, on which the point fits; `fits` tries it.
    ///
    /// # Errors
    /// As `fits`.
    pub fn on_another_card(
        &self,
        cards: &[GpuProfile],
        fits: &mut dyn FnMut(&GpuProfile) -> Result<bool, Error>,
    ) -> Result<Option<Change>, Error> {
        let (mut too_small, mut large_enough) = (0, cards.len());
        while too_small < large_enough {
            let middle = usize::midpoint(too_small, large_enough);
            match fits(&cards[middle])? {
                true => large_enough = middle,
                false => too_small = middle + 1,
            }
        }
        Ok(cards.get(large_enough).map(|card| Change::Gpu(card.name.clone())))
    }

    fn candidates(&self) -> Vec<Change> {
        let Setting { precision, checkpointing } = self.point.setting;
        let mut changes = Vec::new();
        let optimizer = self.workload.optimizer;
        let adaptive = matches!(optimizer, Some(Optimizer::Adam | Optimizer::Adamw));
        if adaptive && self.workload.optimizer_implementation == OptimizerImplementation::Foreach {
            changes.push(Change::OptimizerImplementation(OptimizerImplementation::Fused));
        }
        let mixed = self.mixed.iter().copied().filter(|_| !precision.is_mixed());
        changes.extend(mixed.clone().map(Change::Precision));
        if !matches!(checkpointing, Checkpointing::Full | Checkpointing::AsIs) {
            changes.push(Change::Checkpointing(Checkpointing::Full));
            changes.extend(mixed.take(1).map(|precision| {
                Change::Setting(Setting { precision, checkpointing: Checkpointing::Full })
            }));
        }
        let halvings = std::iter::successors(self.workload.sequence, |tokens| Some(tokens / 2));
        let shorter = halvings.skip(1).take_while(|tokens| *tokens >= SHORTEST_SEQUENCE);
        changes.extend(shorter.map(Change::Sequence));
        if self.workload.subject.command().is_some() {
            return changes;
        }
        match optimizer {
            None | Some(Optimizer::Adam | Optimizer::Adamw) => changes.extend([
                Change::Optimizer(Optimizer::SgdMomentum),
                Change::Optimizer(Optimizer::Sgd),
            ]),
            Some(Optimizer::SgdMomentum) => changes.push(Change::Optimizer(Optimizer::Sgd)),
            Some(Optimizer::Sgd) => {}
        }
        changes
    }

    fn apply(&self, change: &Change) -> (Workload, Point) {
        let (mut workload, mut point) = (self.workload.clone(), self.point);
        match change {
            Change::MicroBatch(size) => point.micro_batch = *size,
            Change::OptimizerImplementation(implementation) => {
                workload.optimizer_implementation = *implementation;
            }
            Change::Precision(precision) => point.setting.precision = *precision,
            Change::Checkpointing(checkpointing) => point.setting.checkpointing = *checkpointing,
            Change::Setting(setting) => point.setting = *setting,
            Change::Sequence(tokens) => workload.sequence = Some(*tokens),
            Change::Optimizer(optimizer) => workload.optimizer = Some(*optimizer),
            // Tried by `on_another_card`.
            Change::Gpu(_) => {}
        }
        (workload, point)
    }
}

#[cfg(test)]
mod tests {
    use super::super::campaign::tests::{Affine, setting, workload};
    use super::*;

    const POINT: Point = Point {
        setting: Setting { precision: Precision::Fp32, checkpointing: Checkpointing::None },
        micro_batch: 1,
        accumulation: 2,
        remainder: None,
    };

    fn remedies(cost: fn(&Workload, Setting) -> (u64, u64), most: usize) -> Vec<Change> {
        let workload = Workload { sequence: Some(1024), ..workload() };
        let budget = Bytes(1000);
        let search =
            Remedies { workload: &workload, point: POINT, mixed: &[Precision::Bf16], budget };
        search.on_this_card(&mut Affine::new(budget, cost), most).unwrap()
    }

    #[test]
    fn the_least_intrusive_change_comes_first() {
        let cost = |workload: &Workload, setting: Setting| match setting.precision.is_mixed() {
            true => (500, 1),
            false => (1000 * u64::from(workload.sequence.unwrap()) / 512, 1),
        };
        assert_eq!(remedies(cost, 1), [Change::Precision(Precision::Bf16)]);
        let all = remedies(cost, 9);
        assert!(all.contains(&Change::Sequence(256)), "{all:?}");
        assert!(!all.contains(&Change::Sequence(128)), "{all:?}");
    }

    #[test]
    fn what_was_tried_and_does_not_fit_is_not_offered() {
        assert_eq!(remedies(|_, _| (5000, 1), 3), []);
    }

    #[test]
    fn what_is_in_use_already_is_not_offered() {
        let workload = workload();
        let point = Point { setting: setting(Precision::Bf16, Checkpointing::Full), ..POINT };
        let budget = Bytes(1000);
        let search = Remedies { workload: &workload, point, mixed: &[Precision::Fp16], budget };
        let found = search.on_this_card(&mut Affine::new(budget, |_, _| (1, 1)), 9).unwrap();
        assert_eq!(
            found,
            [
                Change::OptimizerImplementation(OptimizerImplementation::Fused),
                Change::Optimizer(Optimizer::SgdMomentum),
                Change::Optimizer(Optimizer::Sgd),
            ]
        );
    }
}
