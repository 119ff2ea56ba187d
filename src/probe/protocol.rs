//! All that crosses the boundary between the CLI and a worker: one JSON object a line.
//!
//! The worker says [`Reply::Ready`] once (one that trains a user's function imports that first), then
//! answers each [`Request`] with one reply, in order,
//! until it reads [`Request::Quit`] or its standard input ends. After a reply to `measure` the worker
//! still holds the point's memory, so that the reader can look at the device from outside; it lets
//! go on [`Request::Release`], so that the reader knows from when on it sees the next point alone.

use serde::{Deserialize, Serialize};

use crate::measurement::{Built, Outcome, Point};
use crate::survey::BlockCost;
use crate::units::Bytes;
use crate::workload::Workload;

/// Version of the protocol; a CLI refuses a worker that speaks another.
pub const PROTOCOL: u32 = 3;

/// From the CLI to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// Calls the user's function for the first time. A worker of built-in models is not asked.
    Build {
        /// What is trained.
        workload: Box<Workload>,
    },
    /// Builds the workload afresh and runs the point.
    Measure {
        /// Comes back in the reply.
        id: u64,
        /// What is trained.
        workload: Box<Workload>,
        /// What to try.
        point: Point,
        /// Optimizer steps to run, at least 2: state is created in the first.
        steps: u32,
    },
    /// Builds the workload afresh, and in one forward pass of a micro-step of the point runs each block
    /// by itself, to see what it leaves for the backward pass and how long it takes.
    Survey {
        /// Comes back in the reply.
        id: u64,
        /// What is trained.
        workload: Box<Workload>,
        /// At which micro-batch, in which precision; with full checkpointing.
        point: Point,
    },
    /// Lets go of all memory of the point before; answered by [`Reply::Released`]. A `measure` does so
    /// too, but says nothing about when.
    Release,
    /// Ends the worker with status 0.
    Quit,
}

/// From a worker to the CLI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// First line of a worker: the device is open, its context made.
    Ready(Hello),
    /// The user's function was called.
    Built {
        /// What it returned; none when the device has no room for that.
        built: Option<Built>,
    },
    /// The point was tried.
    Measured {
        /// Of the request.
        id: u64,
        /// `context` and `device_peak` are zero here: they are seen from outside.
        outcome: Outcome,
        /// The allocator's segments now, in bytes: subtracted from what NVML sees of the process
        /// it gives the context.
        reserved: Bytes,
    },
    /// The blocks were run.
    Surveyed {
        /// Of the request.
        id: u64,
        /// In the order of the forward pass; empty when they could not be run.
        blocks: Vec<BlockCost>,
        /// Why not, in one line.
        reason: Option<String>,
    },
    /// No device memory is held but the context's.
    Released,
    /// The user's function cannot be measured; the worker ends.
    Unusable(Unusable),
    /// The request was not understood or the device could not be opened; the worker ends.
    Refused {
        /// Why, in one line.
        message: String,
    },
}

/// Why a user's function cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unusable {
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the user's own code, as Python prints it.
    pub traceback: Option<String>,
    /// What was asked for is not there, rather than broken.
    pub bad_input: bool,
}

/// Who a worker is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the worker.
    pub protocol: u32,
    /// Package version of the worker.
    pub version: String,
    /// Its process id, as itself sees it.
    pub pid: u32,
    /// PyTorch (libtorch) version.
    pub torch: String,
    /// CUDA version that PyTorch was built with.
    pub cuda: String,
    /// cuDNN version in use.
    pub cudnn: String,
    /// The device's product name as CUDA states it.
    pub device: String,
    /// The device's memory once the context is made; `None` from a worker that does not tell.
    #[serde(default)]
    pub memory: Option<DeviceMemory>,
}

/// What `cudaMemGetInfo` says, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// Not taken by anyone.
    pub free: Bytes,
    /// What CUDA programs can have at all: the board less the driver's reserve.
    pub total: Bytes,
}
