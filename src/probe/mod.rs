//! Trying points: the worker's protocol, the worker as a child process, and which point to try next.

mod campaign;
mod command_prober;
mod complaint;
mod evidence;
mod interrupt;
mod launch;
mod lines;
mod longest;
mod observation;
mod progress;
pub mod protocol;
mod python;
mod record;
mod remedy;
mod search;
mod trial;
mod verify;
mod worker;
mod worker_prober;
mod workers;

use crate::error::Error;
use crate::measurement::{Built, Measurement, Point};
use crate::survey::Surveyed;
use crate::units::Bytes;
use crate::workload::Workload;
use protocol::Hello;

pub use campaign::{Campaign, Findings, Searched};
pub use interrupt::Interrupt;
pub use launch::Launch;
pub use longest::Longest;
pub use observation::Observation;
pub use python::{end_group, not_started, python};
pub use record::Record;
pub use remedy::{Change, Remedies};
pub use verify::{Verified, verify};
pub use worker_prober::WorkerProber;
pub use workers::Workers;

/// Something that can try a point.
pub trait Prober {
    /// Tries `point` of `workload`. A point that fails for itself is a measurement that says so.
    ///
    /// # Errors
    /// When no point can be tried any more, or the user asked to stop.
    fn probe(&mut self, workload: &Workload, point: Point) -> Result<Measurement, Error>;
}

/// A [`Prober`] on one GPU, and what it has learnt besides.
pub trait GpuProber: Prober {
    /// Gets ready now, rather than with the first point. A user's function is called, also where it
    /// was before.
    ///
    /// # Errors
    /// When a worker cannot be started, or the user's function cannot be measured.
    fn open(&mut self, _workload: &Workload) -> Result<(), Error> {
        Ok(())
    }

    /// The PyTorch that trains; none before it is known.
    fn hello(&self) -> Option<&Hello>;

    /// What the user's function returned, once it was called and the device had room for that.
    fn built(&self) -> Option<&Built> {
        None
    }

    /// What each block of the model costs in a micro-step of `point`, in the order of the forward pass;
    /// or why that cannot be known.
    ///
    /// # Errors
    /// As [`Prober::probe`].
    fn survey(&mut self, _workload: &Workload, _point: Point) -> Result<Surveyed, Error> {
        Ok(Err("a command checkpoints its blocks by itself".to_owned()))
    }

    /// NVML did not name the process at some point, so its use of the device was inferred.
    fn was_unnamed(&self) -> bool;

    /// The most that the memory of other processes grew by during one point, in bytes.
    fn others_grew(&self) -> Bytes;
}
