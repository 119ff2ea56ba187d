//! What is trained, and with which knobs.

mod blocks;
mod command;
mod goal;
mod knobs;
mod lengths;
mod placeholder;
mod subject;
#[expect(clippy::module_inception, reason = "the type gives the file its name")]
mod workload;

pub use blocks::Blocks;
pub use command::{Command, Values, quoted, ranks};
pub use goal::{Goal, MOST_PER_GPU};
pub use knobs::{Checkpointing, Optimizer, OptimizerImplementation, Precision};
pub use lengths::Lengths;
pub use placeholder::Variable;
pub use subject::{Function, Subject};
pub use workload::Workload;
