//! What accumulating gradients and computing in fewer bits change, shown by training.
//!
//! ```text
//! a child in the user's Python ─► Answer (facts) ─► verdicts, rates ─► Equivalence (the document)
//! ```
//!
//! Facts and conclusions are apart, so that each verdict can be tested with facts written down.

mod answer;
mod child;
mod gradients;
mod training;

use schemars::JsonSchema;
use serde::Serialize;

pub use answer::{
    About, Answer, Fit, Measured, MeasuredCase, MeasuredOwn, MeasuredPeak, MeasuredRun,
    MeasuredTraining, Peak, Setting, Validation,
};
pub use child::{Device, Own, Part, Place, Progress, Request, Student};
pub use gradients::{Cause, Compared, GradientCase, OwnGradient, Verdict};
pub use training::{PeaksOn, Training, TrainingRun};

/// Version of [`Equivalence`]; raised by every change that an older reader would misread.
pub const EQUIVALENCE_VERSION: u32 = 1;

/// What `vramfit equivalence --json` prints. Sizes are bytes, times seconds, losses nats, differences of
/// gradients norms relative to the full batch's gradient.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Equivalence {
    /// [`EQUIVALENCE_VERSION`] of the writer.
    pub equivalence_version: u32,
    /// Version of vramfit.
    pub vramfit: String,
    /// What everything random was drawn from.
    pub seed: u64,
    /// What computed.
    pub about: About,
    /// Whether all came out as it must, and the user's own gradients are equal: exit status 0, else 1.
    pub well: bool,
    /// The built-in cases; empty if they were not asked for.
    pub gradients: Vec<GradientCase>,
    /// The built-in training.
    pub training: Option<Training>,
    /// The user's own function.
    pub own: Option<OwnGradient>,
}

impl Equivalence {
    /// Draws conclusions from facts. `peaks` are a virtual GPU's, where the training ran on a CPU.
    pub fn of(answer: Answer, seed: u64, peaks: Option<PeaksOn>) -> Self {
        let gradients: Vec<_> =
            answer.gradients.unwrap_or_default().into_iter().map(GradientCase::of).collect();
        let own = answer.own.map(OwnGradient::of);
        let peaks = match answer.peaks {
            Some(measured) => Some(PeaksOn {
                gpu: answer.about.name.clone(),
                is_virtual: false,
                peaks: measured,
                failure: None,
            }),
            None => peaks,
        };
        let own_is_equal = own.as_ref().is_none_or(|own| own.gradient.verdict == Verdict::Equal);
        Self {
            equivalence_version: EQUIVALENCE_VERSION,
            vramfit: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            well: own_is_equal && gradients.iter().all(GradientCase::is_as_expected),
            training: answer.training.map(|it| Training::of(it, peaks)),
            about: answer.about,
            gradients,
            own,
        }
    }
}
