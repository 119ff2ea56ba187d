//! The two JSON documents at the edge of vramfit's virtual GPU.
//!
//! [`Description`] goes in: which devices there are. [`Report`] comes out: what a process did on
//! them. Both carry [`SCHEMA`], and a reader refuses another version.
//!
//! A virtual GPU lives in a folder of its own (see [`folder`]): the description, the table through
//! which processes see each other, the reports, and links under the names by which programs open
//! NVIDIA's libraries.
#![forbid(unsafe_code)]

mod description;
pub mod folder;
mod python;
mod report;

pub use description::{Description, Device, ReadError};
pub use python::{
    Allocator, DataDependentSize, EndedBy, OutOfMemory, Place, Python, Shadow, UnknownRead,
};
pub use report::{
    Collective, Convolution, CopyTotals, Cudnn, CudnnAnswer, Gemm, KernelCount, LoadedCode,
    PricedWork, ProcessPeak, ReadBack, Report, Time, TimelinePoint,
};

/// Version of both documents; raised by every change that an older reader would misread.
pub const SCHEMA: u32 = 1;
