//! What a child measured (`python/vramfit_equivalence/serve.py`), and no conclusion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::units::Bytes;

/// All that it says at the end; what was not asked for is none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What computed.
    pub about: About,
    /// The built-in cases.
    pub gradients: Option<Vec<MeasuredCase>>,
    /// The built-in training.
    pub training: Option<MeasuredTraining>,
    /// Its memory, setting by setting.
    pub peaks: Option<Vec<MeasuredPeak>>,
    /// The user's own function.
    pub own: Option<MeasuredOwn>,
}

/// What computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// PyTorch's version.
    pub torch: String,
    /// `cpu` or `gpu`.
    pub device: String,
    /// The GPU's product name, or the vector instructions of the CPU that PyTorch uses.
    pub name: String,
    /// Threads of the CPU that computed.
    pub threads: u32,
}

/// A way to accumulate, and its gradients.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCase {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it must come to.
    pub expected: Verdict,
    /// Why, and what to do about it.
    pub lesson: String,
    /// One of each precision.
    pub measured: Vec<Measured>,
}

/// Gradients in one precision: how far apart, relative to the norm of the full batch's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// `fp64`, `fp32`, `tf32`, and `bf16` and `fp16` by autocast.
    pub precision: String,
    /// From 1 to the next number of its coarsest type.
    pub epsilon: f64,
    /// Accumulated and full gradient.
    pub difference: f64,
    /// Full gradients of two orders of the samples: the noise of rounding.
    pub reordering: f64,
    /// Full gradients with two seeds: what is random.
    pub seed: f64,
    /// How the micro-batches would have to count.
    pub fit: Fit,
    /// Accumulated and full gradient with batch norm on its running statistics; null without any.
    pub frozen: Option<f64>,
    /// Parameters that make up most of the difference, each with its own.
    pub parameters: Vec<(String, f64)>,
}

/// By which factors the micro-batches' gradients come nearest to the full one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// One a micro-batch; 1 leaves it as it was accumulated.
    pub factors: Vec<f64>,
    /// The difference that is left then.
    pub left: f64,
}

/// The gradients of a user's function.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredOwn {
    /// Class of the model.
    pub model: String,
    /// Samples of the full batch.
    pub target_batch: u32,
    /// Samples of a micro-batch.
    pub micro_batch: u32,
    /// Batch norms that use the statistics of what they see.
    pub batch_norms: Vec<String>,
    /// Dropout modules that were switched off.
    pub dropouts: Vec<String>,
    /// All but batch norm was in evaluation mode, since something else was random.
    pub evaluated: bool,
    /// In fp32, and in fp64 where the code goes along.
    pub measured: Vec<Measured>,
}

/// The built-in training.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTraining {
    /// Optimizer steps.
    pub steps: u32,
    /// Samples in each.
    pub batch: u32,
    /// Characters in a sample.
    pub length: u32,
    /// Numbers in the model.
    pub parameters: u64,
    /// Nats per character that no model can be without.
    pub entropy: f64,
    /// One a setting.
    pub runs: Vec<MeasuredRun>,
}

/// A setting of the built-in training.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// `fp32`, `tf32`, `bf16` and `fp16` by autocast, or `pure-bf16`.
    pub precision: String,
    /// Samples in a micro-batch.
    pub micro_batch: u32,
    /// Micro-batches in an optimizer step.
    pub accumulation: u32,
    /// Whether blocks are checkpointed.
    pub checkpointed: bool,
}

/// How a setting trained.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRun {
    /// The setting.
    pub setting: Setting,
    /// Of each step, the mean over its samples.
    pub losses: Vec<f64>,
    /// Of each step.
    pub seconds: Vec<f64>,
    /// Floating-point operations of a step.
    pub flops: u64,
    /// Steps that the gradient scaler left out.
    pub skipped: u32,
    /// At the end.
    pub validation: Validation,
}

/// On text that was not trained on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Nats per character.
    pub loss: f64,
    /// Share of characters that are predicted.
    pub accuracy: f64,
}

/// A setting's memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MeasuredPeak {
    /// The setting.
    pub setting: Setting,
    /// What it held.
    #[serde(flatten)]
    pub peak: Peak,
}

/// Memory at the peak, by PyTorch's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// In tensors: weights, gradients, optimizer state, activations.
    pub tensors: Bytes,
    /// cuBLAS's workspaces, which are the same for a model of any size.
    pub workspace: Bytes,
    /// Held of the GPU for both, in segments.
    pub reserved: Bytes,
}
