//! A trace from its beginning to its end.

use super::begin::Before;
use super::{Action, Recorded, Trace};
use crate::units::Bytes;

/// A trace, what was before it, and what it says of itself.
#[derive(Debug)]
pub struct History<'a> {
    pub(super) trace: &'a Trace,
    pub(super) before: Before,
    recorded: Recorded,
}

impl Trace {
    /// Works out what was before the first event.
    pub fn history(&self) -> History<'_> {
        let before = Before::of(self);
        let mut reserved = before.pieces.bytes();
        let mut requested = sum(before.live.values().map(|live| live.requested));
        let mut recorded = Recorded {
            reserved_peak: Bytes(reserved),
            requested_peak: Bytes(requested),
            reserved_end: Bytes(sum(self.segments.iter().map(|segment| segment.bytes))),
            segments_end: self.segments.len(),
            out_of_memory: 0,
        };
        for event in &self.events {
            match event.action {
                Action::Alloc => requested = requested.saturating_add(event.bytes),
                Action::Free => requested = requested.saturating_sub(event.bytes),
                Action::SegmentAlloc => reserved = reserved.saturating_add(event.bytes),
                Action::SegmentFree(_) => reserved = reserved.saturating_sub(event.bytes),
                Action::OutOfMemory => recorded.out_of_memory += 1,
                Action::FreeRequested => {}
            }
            recorded.reserved_peak = recorded.reserved_peak.max(Bytes(reserved));
            recorded.requested_peak = recorded.requested_peak.max(Bytes(requested));
        }
        History { trace: self, before, recorded }
    }
}

impl History<'_> {
    /// What the file itself says.
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// The most that it held or would have held, had it got all that it asked for.
    pub fn most_wanted(&self) -> Bytes {
        let failed = self.trace.events.iter().filter(|it| it.action == Action::OutOfMemory);
        let largest = failed.map(|event| event.bytes).max().unwrap_or(0);
        let held = self.recorded.reserved_peak.max(self.recorded.requested_peak);
        Bytes(held.get().saturating_add(largest))
    }

    /// Whether it begins with an allocator that holds nothing.
    pub fn is_whole(&self) -> bool {
        self.before.pieces.is_empty() && self.before.live.is_empty()
    }

    /// What was in use before the first event, as it was asked for.
    pub fn live_before(&self) -> Bytes {
        Bytes(sum(self.before.live.values().map(|live| live.requested)))
    }

    /// What the allocator held before the first event.
    pub fn reserved_before(&self) -> Bytes {
        Bytes(self.before.pieces.bytes())
    }

    /// Events of a kind that is not known here.
    pub fn unknown_events(&self) -> u64 {
        self.trace.unknown_events
    }

    /// Events that contradict each other or the end.
    pub fn contradictions(&self) -> u64 {
        self.before.contradictions
    }
}

/// A file may state any numbers.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
