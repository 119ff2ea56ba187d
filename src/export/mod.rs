//! A plan in the form that a framework reads: what it recommends, ready to be run.

mod deepspeed;
mod evidence;
mod facts;
mod python;
mod template;

use std::fmt::Debug;

use crate::plan::{Choice, Plan};
use crate::workload::{Checkpointing, Precision};

/// A framework that plans are handed to.
pub trait Exporter: Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// What comes out, in a few words for help.
    fn about(&self) -> &'static str;
    /// The recommendation of a plan in its form.
    fn render(&self, recommended: Recommended<'_>) -> Artefact;
}

/// A plan that recommends something.
#[derive(Clone, Copy, Debug)]
pub struct Recommended<'a> {
    plan: &'a Plan,
    choice: &'a Choice,
}

impl<'a> Recommended<'a> {
    /// The plan's recommendation, if it has one and says how to train: that of a command leaves
    /// precision and checkpointing to it.
    pub fn of(plan: &'a Plan) -> Option<Self> {
        let choice = plan.recommendation.as_ref()?;
        let says_how = plan.workload.subject.command().is_none()
            && choice.precision != Precision::AsIs
            && choice.checkpointing != Checkpointing::AsIs;
        says_how.then_some(Self { plan, choice })
    }
}

/// What is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artefact {
    /// A Python module or a configuration, without a line end at its end.
    pub text: String,
    /// What the form cannot express and the user has to do or know, a line each.
    pub remarks: Vec<String>,
}

/// All of them.
pub static EXPORTERS: &[&dyn Exporter] = &[
    &python::PYTORCH,
    &python::TRANSFORMERS,
    &python::ACCELERATE,
    &python::LIGHTNING,
    &deepspeed::DeepSpeed,
];
