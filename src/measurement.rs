//! What a probe asks and what comes back: data only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;
use crate::workload::{Checkpointing, Precision};

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

/// One thing to try: a setting, a micro-batch and how often it is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The knobs.
    pub setting: Setting,
    /// Samples in one micro-step.
    pub micro_batch: u32,
    /// Micro-steps of `micro_batch` samples in one optimizer step, at least 1.
    pub accumulation: u32,
    /// Samples in one more, smaller micro-step that makes up the target (`--ragged`).
    pub remainder: Option<u32>,
}

/// The memory of one point, in bytes, named as design.md names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// CUDA context and loaded kernels: what the process holds beyond the allocator's segments.
    pub context: Bytes,
    /// Live after building the model.
    pub weights: Bytes,
    /// Live after the first backward pass, less what was live before it.
    pub gradients: Bytes,
    /// Live after the first optimizer step, less weights and gradients.
    pub optimizer_state: Bytes,
    /// Live at the end of a forward pass, less weights, gradients and state; inputs among it.
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

impl Memory {
    /// Reserved by the allocator at its peak, but not handed out.
    pub fn fragmentation(&self) -> Bytes {
        self.reserved_peak.saturating_sub(self.allocated_peak)
    }
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
    /// Wall time of one whole optimizer step in seconds: of the training on a real GPU, of
    /// PyTorch's own dispatch on a virtual one.
    pub step_seconds: f64,
}

/// A point with its outcome and where the numbers come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// What was tried.
    pub point: Point,
    /// What became of it.
    pub outcome: Outcome,
    /// Where the numbers come from.
    pub evidence: Evidence,
    /// What trying it took, in seconds of wall time, building the model included.
    pub probe_seconds: f64,
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

/// Whether kernels really ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// A real GPU.
    Real,
    /// The virtual GPU: PyTorch's own allocations, no kernel executed.
    Virtual,
}
