//! The answer as data: a versioned document that is printed, written to a file and read again.

mod check;
mod contexts;
mod file;
mod grounds;
mod note;
mod speed;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::{Budget, Platform};
use crate::measurement::{Built, EvidenceKind, Measurement, Memory, Setting};
use crate::probe::Change;
use crate::survey::Survey;
use crate::units::Bytes;
use crate::workload::{Checkpointing, Goal, Precision, Workload};

pub use contexts::{Answer, Context, Contexts, Limit, LimitOf, LongestContext, NextContext};
pub use file::read;
pub use grounds::{Ground, Grounds, Level};
pub use note::{ALLOCATOR_VARIABLES, Note, Tried};
pub use speed::{Figure, Speed, SpeedBasis, Training};

/// Version of the document; raised by every change that an older reader would misread.
pub const PLAN_VERSION: u32 = 1;

/// How to train within a GPU's memory, and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_VERSION`] of the writer.
    pub plan_version: u32,
    /// Of everything that the numbers depend on.
    pub versions: Versions,
    /// The GPU planned for.
    pub device: DeviceSummary,
    /// What is trained.
    pub workload: Workload,
    /// What the user's function returned; null for a built-in model, or when the GPU had no room.
    #[serde(default)]
    pub built: Option<Built>,
    /// What the micro-batches add up to.
    pub goal: Goal,
    /// What the recommended setting is best at.
    pub objective: Objective,
    /// What may be used of the GPU.
    pub budget: Budget,
    /// The recommended setting; null when nothing fits, or nothing is known yet.
    pub recommendation: Option<Choice>,
    /// Of a command: the shell's line that trains so. `{steps}` stays, for the user to say.
    #[serde(default)]
    pub command: Option<String>,
    /// Each other setting at the micro-batch that is best there, the better first, and at its largest
    /// where that is another one.
    pub alternatives: Vec<Choice>,
    /// What memory buys: all that was run, fits and reaches the target, but for what takes more memory
    /// and is no faster, the least memory first. Empty where speeds are not known.
    #[serde(default)]
    pub pareto: Vec<Choice>,
    /// How long the training that was asked for takes as recommended; null where none was, or the speed
    /// is not known.
    #[serde(default)]
    pub training: Option<Training>,
    /// What each means of saving memory buys, in the order in which a careful person takes them.
    pub ladder: Vec<Rung>,
    /// Where several lengths of context were asked for: what each takes.
    #[serde(default)]
    pub contexts: Option<Contexts>,
    /// When nothing fits: changes with which it was tried and does, the smallest first.
    pub would_fit: Vec<Change>,
    /// Everything that was measured, in order; of several lengths of context, those of the recommended
    /// one first. Indices of evidence point here.
    pub measurements: Vec<Measurement>,
    /// What the model's blocks cost, where some of them were chosen to be checkpointed.
    #[serde(default)]
    pub surveys: Vec<Survey>,
    /// What the numbers rest on.
    #[serde(default)]
    pub grounds: Grounds,
    /// What one should know.
    pub notes: Vec<Note>,
    /// The search was stopped before its end; what is recommended fits, but better may exist.
    pub incomplete: bool,
}

impl Plan {
    /// How many blocks the model has, where that was seen.
    pub fn block_count(&self) -> Option<usize> {
        self.surveys.first().map(|survey| survey.blocks.len())
    }

    /// Whether it is known that nothing fits, though perhaps not what would.
    pub fn fits_nothing(&self) -> bool {
        let untried = |note: &Note| matches!(note, Note::ChangesUntried { .. });
        self.recommendation.is_none() && (!self.incomplete || self.notes.iter().any(untried))
    }
}

/// Versions that the numbers depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Of this program.
    pub vramfit: String,
    /// PyTorch (libtorch) of the worker; empty when none got ready.
    pub torch: String,
    /// CUDA that PyTorch was built with.
    pub cuda: String,
    /// cuDNN in use.
    pub cudnn: String,
    /// The driver; of a virtual GPU the one it states.
    pub driver: String,
}

/// The GPU planned for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceSummary {
    /// Name on the command line.
    pub name: String,
    /// Product name.
    pub product: String,
    /// `GPU-…`.
    pub uuid: String,
    /// Real or virtual.
    pub kind: EvidenceKind,
    /// CUDA compute capability, e.g. `8.6`.
    pub compute_capability: String,
    /// The operating system planned for.
    #[serde(default)]
    pub platform: Platform,
}

/// What a recommended setting is best at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Samples per second; where they are not known, the careful person's order.
    #[default]
    Throughput,
    /// The largest micro-batch.
    MicroBatch,
    /// The least memory.
    Memory,
}

/// A way to train that was run and fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Samples in one micro-step on one GPU.
    pub micro_batch: u32,
    /// Micro-steps of that size in one optimizer step.
    pub accumulation: u32,
    /// Samples in one more, smaller micro-step, where the target is not a multiple.
    pub remainder: Option<u32>,
    /// Samples in one optimizer step over all GPUs: the target.
    pub effective_batch: u32,
    /// In which precision to compute.
    pub precision: Precision,
    /// Which blocks to checkpoint.
    pub checkpointing: Checkpointing,
    /// What it takes.
    pub memory: Memory,
    /// How fast one GPU trains so; null where step times are not known.
    #[serde(default)]
    pub speed: Option<Speed>,
    /// Index of its measurement.
    pub evidence: usize,
    /// The next larger admissible micro-batch, which was run and does not fit; null when there is
    /// none, or it was not reached.
    pub next: Option<Next>,
}

impl Choice {
    /// Its knobs.
    pub fn setting(&self) -> Setting {
        Setting { precision: self.precision, checkpointing: self.checkpointing }
    }

    /// The same where its measurements come after `count` others.
    #[must_use]
    pub fn with_evidence_after(mut self, count: usize) -> Self {
        self.evidence += count;
        if let Some(next) = &mut self.next {
            next.evidence += count;
        }
        self
    }
}

/// The next admissible micro-batch above a choice, which does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Next {
    /// Samples in one micro-step on one GPU.
    pub micro_batch: u32,
    /// It runs, but only by flushing the allocator's cache.
    pub tight: bool,
    /// Index of its measurement.
    pub evidence: usize,
}

/// A means of saving memory, on top of those before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rung {
    /// The means.
    pub step: Step,
    /// In which precision.
    pub precision: Precision,
    /// With which checkpointing.
    pub checkpointing: Checkpointing,
    /// Whether several micro-batches make up an optimizer step.
    pub accumulates: bool,
    /// The micro-batch at which the rungs are compared.
    pub micro_batch: u32,
    /// What the device sees at that micro-batch; null when it does not run there.
    pub device_peak: Option<Bytes>,
    /// How fast it is at that micro-batch; null when it does not run there, or its time is not known.
    #[serde(default)]
    pub speed: Option<Speed>,
    /// The largest micro-batch that was run and fits; null when none does.
    pub largest_micro_batch: Option<u32>,
    /// Whether the target batch can be trained on so far up the ladder.
    pub reaches_target: bool,
    /// Index of the measurement behind `device_peak` and `speed`.
    pub evidence: Option<usize>,
}

/// The means of saving memory, in the careful person's order.
#[derive(
    Clone, Copy, Debug, PartialEq, PartialOrd, Ord, Eq, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Nothing: the whole target in one step, in the least risky precision.
    Plain,
    /// 16-bit autocast.
    MixedPrecision,
    /// Gradient accumulation.
    Accumulation,
    /// Activation checkpointing of some blocks.
    SelectiveCheckpointing,
    /// Activation checkpointing.
    Checkpointing,
}
