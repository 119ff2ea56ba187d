use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimizer, OptimizerImplementation, Subject};
use crate::error::{Error, ErrorKind};

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

impl Workload {
    /// Refuses a sequence that the model cannot take.
    ///
    /// # Errors
    /// When it has none and is given one, or it is missing, empty or too long.
    pub fn check_sequence(&self) -> Result<(), Error> {
        // A function says for itself which sequences it takes.
        let Subject::BuiltIn(model) = &self.subject else { return Ok(()) };
        let (longest, model) = (model.architecture.max_sequence(), || model.name.clone());
        let error = match (self.sequence, longest) {
            (Some(sequence), None) => ErrorKind::NoSequences { model: model(), sequence },
            (None | Some(0), Some(_)) => ErrorKind::SequenceMissing { model: model() },
            (Some(sequence), Some(longest)) if sequence > longest => {
                ErrorKind::SequenceTooLong { model: model(), sequence, longest }
            }
            (Some(_), Some(_)) | (None, None) => return Ok(()),
        };
        Err(error.into())
    }
}
