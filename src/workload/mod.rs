//! What is trained, and with which knobs.

mod knobs;
mod workload;

pub use knobs::{Checkpointing, Optimizer, OptimizerImplementation, Precision};
pub use workload::Workload;
