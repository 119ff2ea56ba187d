use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimizer, OptimizerImplementation, Subject};

/// What is trained: everything about a step that a search does not vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Whose model.
    pub subject: Subject,
    /// Tokens in one sample; none for what has no sequences, or where a function decides for itself.
    pub sequence: Option<u32>,
    /// The optimizer; none is the one that the user's function makes.
    pub optimizer: Option<Optimizer>,
    /// How its step is carried out.
    pub optimizer_implementation: OptimizerImplementation,
    /// Largest gradient norm, when gradients are clipped.
    pub gradient_clipping: Option<f64>,
}
