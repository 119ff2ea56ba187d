//! A memory snapshot of PyTorch's allocator, as `torch.cuda.memory._dump_snapshot` writes it: what
//! the allocator held at the end, and what happened before.
//!
//! Keys and actions are those of PyTorch's `torch/csrc/cuda/memory_snapshot.cpp` (2.1 to 2.15).

mod begin;
mod content;
mod file;
mod flush;
mod history;
mod json;
mod peak;
mod pickle;
mod put_back;
mod script;
mod source;
mod tree;

use crate::units::Bytes;

pub use history::History;
pub use peak::{Kept, Peak, Phase, Sample};
pub use script::{Begin, Lane, Operation, Script};

/// A snapshot, as far as the allocator's behaviour depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What the program set in `PYTORCH_CUDA_ALLOC_CONF` or later; empty if nothing.
    pub settings: String,
    /// One of each device that did something, by its index.
    pub devices: Vec<Trace>,
}

/// What one device's allocator did.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Index of the device.
    pub device: u32,
    /// What was recorded, in order.
    pub events: Vec<Event>,
    /// Calls that events came from; events of one place share them.
    pub stacks: Vec<Stack>,
    /// What the allocator held after the last event, by address.
    pub segments: Vec<Segment>,
    /// Events of a kind that is not known here.
    pub unknown_events: u64,
}

/// Memory that the allocator got from the driver in one piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Where it begins.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// The stream that its blocks are handed out on; 0 is the default one.
    pub stream: u64,
    /// For blocks above 1 MiB.
    pub large: bool,
    /// Which private pool it belongs to (`torch.cuda.MemPool`, a CUDA graph); `None` for the common.
    pub pool: Option<Pool>,
    /// Part of an expandable segment.
    pub expandable: bool,
    /// Its blocks, by address, without gaps.
    pub blocks: Vec<Block>,
}

/// The allocator's name for a private pool.
pub type Pool = (u64, u64);

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// Its size, rounded as the allocator does.
    pub bytes: u64,
    /// What was asked for.
    pub requested: u64,
    /// Whether it is in use, or waits for another stream that uses it.
    pub active: bool,
}

/// Calls of Python, innermost first; empty on a thread of PyTorch's own, such as that of the backward
/// pass.
pub type Stack = Vec<Frame>;

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Path of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Name of the function; `<module>` outside any.
    pub function: String,
}

/// Something that the allocator did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it did.
    pub action: Action,
    /// Where, except for [`Action::OutOfMemory`].
    pub address: u64,
    /// How much: of blocks what was asked for, of segments their size.
    pub bytes: u64,
    /// On which stream.
    pub stream: u64,
    /// Where in the program, by its index among the trace's; none where that was not recorded.
    pub stack: Option<u32>,
}

/// What the allocator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It handed out a block.
    Alloc,
    /// It was given a block back, which another stream may still use.
    FreeRequested,
    /// A block became free.
    Free,
    /// It got a segment from the driver, or mapped a part of an expandable one.
    SegmentAlloc,
    /// It gave a segment back to the driver, or unmapped a part of an expandable one.
    SegmentFree(Releaser),
    /// It had no memory for a request, and raised its error.
    OutOfMemory,
}

/// Who had a segment given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Releaser {
    /// The program, by `torch.cuda.empty_cache`.
    Program,
    /// The allocator, for want of memory.
    Allocator,
    /// The record has no stack of calls that would tell.
    Unknown,
}

/// What the file itself says of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Recorded {
    /// Most that the allocator held of the device at once.
    pub reserved_peak: Bytes,
    /// Most of what was asked for that was in use at once.
    pub requested_peak: Bytes,
    /// What the allocator held at the end.
    pub reserved_end: Bytes,
    /// Segments at the end.
    pub segments_end: usize,
    /// Requests that it had no memory for.
    pub out_of_memory: u64,
}
