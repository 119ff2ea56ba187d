//! What a probe asks and what comes back: data only.

use std::fmt;
use std::ops::{Add, Mul, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::workload::{Checkpointing, Goal, Precision};

/// The knobs that a search varies besides the micro-batch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Setting {
    /// In which precision the step computes.
    pub precision: Precision,
    /// Which blocks are checkpointed.
    pub checkpointing: Checkpointing,
}

impl fmt::Display for Setting {
    /// `bf16, checkpointing none`; what the user's command does by itself is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { precision, checkpointing } = self;
        match (*precision, *checkpointing) {
            (Precision::AsIs, Checkpointing::AsIs) => write!(f, "as it is"),
            (Precision::AsIs, _) => write!(f, "checkpointing {checkpointing}"),
            (_, Checkpointing::AsIs) => write!(f, "{precision}"),
            _ => write!(f, "{precision}, checkpointing {checkpointing}"),
        }
    }
}

/// One thing to try: a setting, a micro-batch and how often it is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The knobs.
    pub setting: Setting,
    /// Samples in one micro-step.
    pub micro_batch: u32,
    /// Micro-steps of `micro_batch` samples in one optimizer step, at least 1. A worker runs two of
    /// them, since from the second on gradients are kept and the peak repeats itself, and counts the
    /// time of the others.
    pub accumulation: u32,
    /// Samples in one more, smaller micro-step that makes up the target (`--ragged`).
    pub remainder: Option<u32>,
}

/// The memory of one point, in bytes, named as design.md names it.
///
/// Each part is read at the border of a phase, where it is whole, and as a difference, so that
/// cuBLAS's lasting workspaces are in none of them. The parts need not be live together: without
/// accumulation gradients take the place of activations during the backward pass. Where the peak
/// is lower than the sum of the named parts, `workspace` is zero and [`Memory::not_together`] tells
/// by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// CUDA context and loaded kernels: what the process holds beyond the allocator's segments.
    pub context: Bytes,
    /// Live after building the model.
    pub weights: Bytes,
    /// What zeroing the gradients frees after a whole step.
    pub gradients: Bytes,
    /// What the first optimizer step leaves.
    pub optimizer_state: Bytes,
    /// Live at the end of a forward pass, less what was live before its inputs were made.
    pub activations: Bytes,
    /// The rest of the peak: temporaries, cuBLAS and cuDNN workspaces.
    pub workspace: Bytes,
    /// PyTorch's `max_memory_allocated`.
    pub allocated_peak: Bytes,
    /// PyTorch's `max_memory_reserved`.
    pub reserved_peak: Bytes,
    /// What NVML sees of the process at its peak: context and reserved.
    pub device_peak: Bytes,
}

impl Point {
    /// How a micro-batch of a setting is tried: as a whole step towards the goal.
    pub fn to_probe(setting: Setting, micro_batch: u32, goal: &Goal) -> Self {
        let (accumulation, remainder) = goal.split(micro_batch);
        Self { setting, micro_batch, accumulation, remainder }
    }

    /// Samples in one optimizer step.
    pub fn samples(&self) -> u32 {
        self.micro_batch * self.accumulation + self.remainder.unwrap_or(0)
    }
}

impl Memory {
    /// By how much weights, gradients, optimizer state and activations together exceed the peak:
    /// bytes that are never live at the same time.
    pub fn not_together(&self) -> Bytes {
        let named = self.weights + self.gradients + self.optimizer_state + self.activations;
        named.saturating_sub(self.allocated_peak)
    }

    /// Reserved by the allocator at its peak, but not handed out.
    pub fn fragmentation(&self) -> Bytes {
        self.reserved_peak.saturating_sub(self.allocated_peak)
    }
}

/// What a measurement says about a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ran within the budget without an allocator retry.
    Fits,
    /// It ran within the budget, but only because the allocator flushed its cache.
    Tight,
    /// It ran beyond the budget, or out of memory.
    TooLarge,
    /// It says nothing about memory.
    Unknown,
}

/// What became of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The steps ran to the end.
    Ran(Ran),
    /// The allocator found no memory.
    OutOfMemory {
        /// PyTorch's own words.
        message: String,
    },
    /// Something else went wrong; the point says nothing about memory.
    Failed {
        /// What went wrong, in one line.
        message: String,
        /// Where in the user's own code, as Python prints it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceback: Option<String>,
    },
}

/// A point whose steps ran to the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// Peaks and parts.
    pub memory: Memory,
    /// Times the allocator had to flush its cache to go on (`num_alloc_retries`). A point that runs
    /// only so is not counted as fitting.
    pub allocator_retries: u64,
    /// One whole optimizer step in seconds: of wall time on a real GPU, of virtual time on a virtual one.
    pub step_seconds: f64,
    /// Where that time goes; only known of a virtual GPU.
    #[serde(default)]
    pub step_time: Option<StepTime>,
}

/// The time of one optimizer step as the virtual GPU's cost model has it, in seconds. The parts add up
/// to `total` where all work is on one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepTime {
    /// From the step's begin to the end of its last kernel.
    pub total: f64,
    /// In kernels that wait for arithmetic.
    pub compute: f64,
    /// In kernels that wait for the device's memory.
    pub memory: f64,
    /// In kernels that take no longer than their launch.
    pub launch: f64,
    /// Moving data to or from the host or other devices.
    pub transfer: f64,
    /// The device waits for the host: for PyTorch's dispatch and the program.
    pub host: f64,
    /// What PyTorch's dispatch took on the host in all, most of it while the device worked.
    pub dispatch: f64,
}

impl StepTime {
    /// Part by part.
    fn with(self, other: Self, each: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            total: each(self.total, other.total),
            compute: each(self.compute, other.compute),
            memory: each(self.memory, other.memory),
            launch: each(self.launch, other.launch),
            transfer: each(self.transfer, other.transfer),
            host: each(self.host, other.host),
            dispatch: each(self.dispatch, other.dispatch),
        }
    }
}

impl Add for StepTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }
}

impl Sub for StepTime {
    type Output = Self;

    /// No part is below zero.
    fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| (a - b).max(0.0))
    }
}

impl Mul<f64> for StepTime {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        self.with(self, |part, _| part * times)
    }
}

/// A point with its outcome and where the numbers come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// What was tried.
    pub point: Point,
    /// Tokens in one sample; null for what has no sequences, or where a function decides for itself.
    #[serde(default)]
    pub sequence: Option<u32>,
    /// What became of it.
    pub outcome: Outcome,
    /// Where the numbers come from.
    pub evidence: Evidence,
    /// What trying it took, in seconds of wall time, building the model included.
    pub probe_seconds: f64,
}

impl Outcome {
    /// A failure that is no fault of the user's code.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), traceback: None }
    }

    /// Where in the user's own code a point failed, if it did there.
    pub fn traceback(&self) -> Option<&str> {
        match self {
            Self::Failed { traceback, .. } => traceback.as_deref(),
            Self::Ran(_) | Self::OutOfMemory { .. } => None,
        }
    }
}

impl Measurement {
    /// Whether the point fits a budget.
    pub fn verdict(&self, budget: Bytes) -> Verdict {
        match &self.outcome {
            Outcome::Ran(ran) if ran.memory.device_peak > budget => Verdict::TooLarge,
            Outcome::Ran(ran) if ran.allocator_retries > 0 => Verdict::Tight,
            Outcome::Ran(_) => Verdict::Fits,
            Outcome::OutOfMemory { .. } => Verdict::TooLarge,
            Outcome::Failed { .. } => Verdict::Unknown,
        }
    }

    /// What was measured, of a point that ran to the end.
    pub fn ran(&self) -> Option<&Ran> {
        match &self.outcome {
            Outcome::Ran(ran) => Some(ran),
            Outcome::OutOfMemory { .. } | Outcome::Failed { .. } => None,
        }
    }
}

/// What a user's function returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Built {
    /// Class of the model.
    pub model: String,
    /// Number of elements of all its parameters.
    pub parameters: u64,
    /// An optimizer comes with it.
    pub own_optimizer: bool,
    /// It has batch norm.
    pub batch_norm: bool,
    /// Its activations can be checkpointed.
    pub checkpointing: bool,
}

/// Where numbers come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Real or virtual.
    pub kind: EvidenceKind,
    /// The GPU's product name.
    pub gpu: String,
    /// Driver version; of a virtual GPU the one it states.
    pub driver: String,
    /// PyTorch (libtorch) version.
    pub torch: String,
    /// CUDA version of that PyTorch.
    pub cuda: String,
    /// cuDNN version of that PyTorch.
    pub cudnn: String,
}

#[cfg(test)]
impl Evidence {
    /// Of a GPU of that kind of which no test asks more.
    pub(crate) fn of(kind: EvidenceKind) -> Self {
        let [gpu, driver, torch, cuda, cudnn] = [const { String::new() }; 5];
        Self { kind, gpu, driver, torch, cuda, cudnn }
    }
}

/// Whether kernels really ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// A real GPU.
    Real,
    /// The virtual GPU: PyTorch's own allocations, no kernel executed.
    Virtual,
}
