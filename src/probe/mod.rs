//! Trying points: the worker's protocol, the worker as a child process, and which point to try next.

mod campaign;
mod interrupt;
mod launch;
mod observation;
pub mod protocol;
mod python;
mod record;
mod remedy;
mod search;
mod verify;
mod worker;
mod worker_prober;

use crate::error::Error;
use crate::measurement::{Measurement, Point};
use crate::workload::Workload;

pub use campaign::{Campaign, Findings, Searched};
pub use interrupt::Interrupt;
pub use launch::Launch;
pub use observation::Observation;
pub use python::python;
pub use record::Record;
pub use remedy::{Change, Remedies};
pub use verify::{Verified, verify};
pub use worker_prober::WorkerProber;

/// Something that can try a point.
pub trait Prober {
    /// Tries `point` of `workload`. A point that fails for itself is a measurement that says so.
    ///
    /// # Errors
    /// When no point can be tried any more, or the user asked to stop.
    fn probe(&mut self, workload: &Workload, point: Point) -> Result<Measurement, Error>;
}
