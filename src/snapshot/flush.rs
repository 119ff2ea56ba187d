//! Where the program emptied the allocator's cache. The snapshot shows only that segments were given
//! back, which the allocator also does by itself for want of memory.

use std::collections::BTreeSet;

use super::history::History;
use super::{Action, Event, Releaser};

/// When segments were given back, and by whom.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flushes {
    /// Indices of the events before which the program emptied the cache.
    pub(super) by_program: BTreeSet<usize>,
    /// How often the allocator did it by itself.
    pub(super) by_allocator: u64,
    /// How many of them all had to be guessed at.
    pub(super) guessed: u64,
}

impl Flushes {
    pub(super) fn of(history: &History<'_>) -> Self {
        let events = &history.trace.events;
        let peak = history.recorded().reserved_peak.get();
        let mut reserved = history.reserved_before().get();
        let mut flushes = Self::default();
        let mut index = 0;
        while let Some(event) = events.get(index) {
            let run = events[index..]
                .iter()
                .take_while(|event| matches!(event.action, Action::SegmentFree(_)))
                .count();
            if run == 0 {
                if event.action == Action::SegmentAlloc {
                    reserved = reserved.saturating_add(event.bytes);
                }
                index += 1;
                continue;
            }
            let (given_back, rest) = events[index..].split_at(run);
            let by_program = by_program(given_back).unwrap_or_else(|| {
                flushes.guessed += 1;
                !was_needed(reserved, rest.first(), peak)
            });
            match by_program {
                true => drop(flushes.by_program.insert(index)),
                false => flushes.by_allocator += 1,
            }
            reserved = given_back.iter().fold(reserved, |sum, it| sum.saturating_sub(it.bytes));
            index += run;
        }
        flushes
    }
}

/// As the stacks of calls say, if there are any.
fn by_program(given_back: &[Event]) -> Option<bool> {
    let releasers = || given_back.iter().map(|event| event.action);
    if releasers().any(|it| it == Action::SegmentFree(Releaser::Program)) {
        return Some(true);
    }
    releasers().any(|it| it == Action::SegmentFree(Releaser::Allocator)).then_some(false)
}

/// Whether the allocator had a reason: right after it, it got a segment that would have taken it
/// beyond all that it ever held, or it had none to give.
fn was_needed(reserved: u64, next: Option<&Event>, peak: u64) -> bool {
    next.is_some_and(|next| match next.action {
        Action::OutOfMemory => true,
        Action::SegmentAlloc => reserved.saturating_add(next.bytes) > peak,
        _ => false,
    })
}
