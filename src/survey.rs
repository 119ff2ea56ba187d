//! What each block of a model costs, by itself: data only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measurement::Setting;
use crate::units::Bytes;

/// What one block of a model leaves for the backward pass, and how long it takes: measured by running
/// it once in a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockCost {
    /// What it leaves besides its output, in bytes, and does not if it is checkpointed.
    pub saved: Bytes,
    /// Its output in bytes, which is kept either way.
    pub output: Bytes,
    /// Its forward pass in seconds, which takes place once more if it is checkpointed.
    pub seconds: f64,
}

/// What the blocks cost, or in one line why that cannot be known.
pub type Surveyed = Result<Vec<BlockCost>, String>;

/// The blocks of a model at one micro-batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// In which setting; its checkpointing is `full`, so that one block at a time is whole.
    pub setting: Setting,
    /// Samples in one micro-step.
    pub micro_batch: u32,
    /// In the order of the forward pass.
    pub blocks: Vec<BlockCost>,
}
