use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// What a child says of a job (`python/vramfit_replay/serve.py`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    /// The process that did it.
    pub(super) pid: u32,
    /// What came of it.
    pub(super) outcome: Outcome,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Outcome {
    Answer(Answer),
    Refusal(Refusal),
}

/// Why a setting cannot be replayed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refusal {
    /// In PyTorch's words.
    pub(super) refused: String,
    /// PyTorch does not know the setting, or its value.
    pub(super) bad_setting: bool,
}

/// What the allocator held.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// PyTorch's version.
    pub torch: String,
    /// From the first event on.
    pub peaks: Peaks,
    /// How often a request could be answered only by emptying the cache.
    pub retries: u64,
    /// The request at which it ended.
    pub out_of_memory: Option<OutOfMemory>,
    /// What it held at the end.
    pub segments: Vec<Layout>,
}

/// PyTorch's statistics, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// Held of the device.
    pub reserved: Bytes,
    /// In blocks that are in use, as they are rounded.
    pub allocated: Bytes,
    /// As before, with blocks that wait for another stream.
    pub active: Bytes,
    /// What was asked for.
    pub requested: Bytes,
}

/// A request that there was no memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfMemory {
    /// Which operation of the script.
    pub operation: u64,
    /// How much was asked for.
    pub requested: Bytes,
}

/// A segment and its blocks, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Its size.
    pub bytes: Bytes,
    /// For blocks above 1 MiB.
    pub large: bool,
    /// Size of each block, and whether it is in use.
    pub blocks: Vec<(Bytes, bool)>,
}
