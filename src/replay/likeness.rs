//! How alike a replay and its recording are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::{Answer, Layout};
use crate::snapshot::Trace;
use crate::units::Bytes;

/// A replay beside what the file itself says of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Likeness {
    /// Segments at the end in the file.
    pub segments: usize,
    /// Of those how many the replay has one of the same size for.
    pub same_size: usize,
    /// And with the same blocks in the same order, used and free.
    pub same_blocks: usize,
    /// Segments at the end of the replay.
    pub replayed_segments: usize,
    /// What the replay held of the device at the end.
    pub replayed_end: Bytes,
}

impl Likeness {
    /// Of a replay with the recorded setting.
    pub fn of(trace: &Trace, answer: &Answer) -> Self {
        let recorded: Vec<_> = trace.segments.iter().map(layout).collect();
        let size = |it: &Layout| (it.bytes, it.large);
        Self {
            segments: recorded.len(),
            same_size: common(recorded.iter().map(size), answer.segments.iter().map(size)),
            same_blocks: common(recorded.iter(), answer.segments.iter()),
            replayed_segments: answer.segments.len(),
            replayed_end: answer.segments.iter().map(|segment| segment.bytes).sum(),
        }
    }

    /// Whether there is no difference.
    pub fn is_exact(&self) -> bool {
        self.same_blocks == self.segments && self.replayed_segments == self.segments
    }
}

fn layout(segment: &crate::snapshot::Segment) -> Layout {
    let blocks = segment.blocks.iter().map(|block| (Bytes(block.bytes), block.active));
    Layout { bytes: Bytes(segment.bytes), large: segment.large, blocks: blocks.collect() }
}

/// How many of the one are among the others, each counted once.
fn common<T: Ord>(one: impl Iterator<Item = T>, others: impl Iterator<Item = T>) -> usize {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for item in others {
        *counts.entry(item).or_default() += 1;
    }
    let found = |item: T| {
        let count = counts.get_mut(&item).filter(|count| **count > 0)?;
        *count -= 1;
        Some(())
    };
    one.filter_map(found).count()
}
