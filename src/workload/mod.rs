//! What is trained, and with which knobs.

mod knobs;
#[expect(clippy::module_inception, reason = "the type gives the file its name")]
mod workload;

pub use knobs::{Checkpointing, Optimizer, OptimizerImplementation, Precision};
pub use workload::Workload;
