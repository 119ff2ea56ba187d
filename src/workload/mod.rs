//! What is trained, and with which knobs.

mod goal;
mod knobs;
mod workload;

pub use goal::Goal;
pub use knobs::{Checkpointing, Optimizer, OptimizerImplementation, Precision};
pub use workload::Workload;
