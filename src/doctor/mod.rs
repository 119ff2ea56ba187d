//! What stands in the way of training on this machine.
//!
//! ```text
//! NVML, /sys, /proc, Python, the worker ─► gather ─► Machine (facts) ─► diagnose ─► problems
//! ```
//!
//! Facts and conclusions are apart, so that each fault can be tested as a machine written down.

mod diagnose;
mod gather;
mod machine;

use schemars::JsonSchema;
use serde::Serialize;

#[cfg(test)]
pub(crate) use diagnose::tests as fixtures;
pub use diagnose::{Code, Problem, Severity, diagnose};
pub use gather::{Reach, gather};
pub use machine::{
    Access, ComputeMode, Display, Driver, GpuFacts, Link, Machine, Memory, Modes, Opened,
    OpenedDevice, Process, Python, PythonFailure, Running, Slowdown, System, Torch, VirtualGpus,
    Worker,
};

/// Version of [`Diagnosis`]; raised by every change that an older reader would misread.
pub const DOCTOR_VERSION: u32 = 1;

/// What `vramfit doctor --json` prints. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// [`DOCTOR_VERSION`] of the writer.
    pub doctor_version: u32,
    /// Version of vramfit.
    pub vramfit: String,
    /// Whether nothing prevents or harms training: exit status 0, else 1.
    pub well: bool,
    /// What was found, the worst first.
    pub problems: Vec<Problem>,
    /// The facts that it was found in.
    pub machine: Machine,
}

impl Diagnosis {
    /// Draws conclusions from facts; `needs_gpu` makes a machine without a usable GPU a problem.
    pub fn of(machine: Machine, needs_gpu: bool) -> Self {
        let problems = diagnose(&machine, needs_gpu);
        Self {
            doctor_version: DOCTOR_VERSION,
            vramfit: env!("CARGO_PKG_VERSION").to_owned(),
            well: problems.iter().all(|problem| problem.severity == Severity::Note),
            problems,
            machine,
        }
    }
}
