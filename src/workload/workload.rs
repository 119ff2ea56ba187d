use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimizer, OptimizerImplementation};
use crate::profile::model::ModelProfile;

/// What is trained: everything about a step that a search does not vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The model.
    pub model: ModelProfile,
    /// Tokens in one sample; none for families without sequences.
    pub sequence: Option<u32>,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// How its step is carried out.
    pub optimizer_implementation: OptimizerImplementation,
    /// Largest gradient norm, when gradients are clipped.
    pub gradient_clipping: Option<f64>,
}
