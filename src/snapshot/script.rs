//! What an allocator has to be asked, so that it does again what it did in a trace.

use std::collections::HashMap;

use super::flush::Flushes;
use super::history::History;
use super::{Action, Event, Pool};

/// How what was there before the first event is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// In segments of the same sizes, at the same places in them, free parts included.
    AsRecorded,
    /// One block after the other into an allocator that holds nothing, as another setting would not
    /// have led to the same places.
    Afresh,
}

/// Where a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// The stream, by its address in the recorded program; 0 is the default one.
    pub stream: u64,
    /// The private pool.
    pub pool: Option<Pool>,
}

/// Something to ask of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A block, which gets this number. Numbers of blocks that are free are used again.
    Alloc {
        /// Its number.
        block: u32,
        /// Its size.
        bytes: u64,
        /// Which of the lanes.
        lane: u32,
    },
    /// Free the block of this number.
    Free {
        /// Its number.
        block: u32,
    },
    /// Give back to the device what is free.
    EmptyCache,
    /// From here on peaks count.
    Begin,
}

/// All that is to be asked, in order.
#[derive(Debug, Default, PartialEq)]
pub struct Script {
    /// Where blocks come from.
    pub lanes: Vec<Lane>,
    /// What is asked.
    pub operations: Vec<Operation>,
    /// Events that cannot be asked for: a block that is not there is given back.
    pub skipped: u64,
    /// How often the program emptied the cache.
    pub emptied_by_program: u64,
    /// How often the allocator gave memory back by itself when this was recorded.
    pub emptied_by_allocator: u64,
    /// Of both, how often there was no stack of calls to tell who did it.
    pub guessed: u64,
    /// Blocks and free parts that could not be put back at their places.
    pub misplaced: u64,
}

impl History<'_> {
    /// What to ask of an allocator that holds nothing.
    pub fn script(&self, begin: Begin) -> Script {
        let mut writer = Writer::default();
        match begin {
            Begin::AsRecorded => writer.put_back(self),
            Begin::Afresh => writer.put_in(self),
        }
        writer.script.operations.push(Operation::Begin);
        writer.follow(self);
        writer.script
    }
}

/// Writes a script.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) script: Script,
    lanes: HashMap<Lane, u32>,
    /// By their addresses in the trace.
    pub(super) blocks: HashMap<u64, u32>,
    free: Vec<u32>,
    used: u32,
}

impl Writer {
    fn follow(&mut self, history: &History<'_>) {
        let flushes = Flushes::of(history);
        let pools = &history.before.pools;
        for (index, (event, pool)) in history.trace.events.iter().zip(pools).enumerate() {
            if flushes.by_program.contains(&index) {
                self.script.operations.push(Operation::EmptyCache);
            }
            self.event(event, *pool);
        }
        self.script.emptied_by_program = flushes.by_program.len() as u64;
        self.script.emptied_by_allocator = flushes.by_allocator;
        self.script.guessed = flushes.guessed;
    }

    fn event(&mut self, event: &Event, pool: Option<Pool>) {
        let lane = Lane { stream: event.stream, pool };
        match event.action {
            Action::Alloc => {
                let block = self.alloc(event.bytes, lane);
                if self.blocks.insert(event.address, block).is_some() {
                    self.script.skipped += 1;
                }
            }
            Action::Free => match self.blocks.remove(&event.address) {
                Some(block) => self.free(block),
                None => self.script.skipped += 1,
            },
            // What it asked for is part of what it needs.
            Action::OutOfMemory => {
                let block = self.alloc(event.bytes, lane);
                self.free(block);
            }
            Action::FreeRequested | Action::SegmentAlloc | Action::SegmentFree(_) => {}
        }
    }

    pub(super) fn alloc(&mut self, bytes: u64, lane: Lane) -> u32 {
        let block = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        let lane = self.lane(lane);
        self.script.operations.push(Operation::Alloc { block, bytes, lane });
        block
    }

    pub(super) fn free(&mut self, block: u32) {
        self.script.operations.push(Operation::Free { block });
        self.free.push(block);
    }

    pub(super) fn lane(&mut self, lane: Lane) -> u32 {
        let next = self.script.lanes.len() as u32;
        *self.lanes.entry(lane).or_insert_with(|| {
            self.script.lanes.push(lane);
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Block, Segment, Trace};

    const MIB: u64 = 1 << 20;
    const LANE: u32 = 0;

    fn event(action: Action, address: u64, bytes: u64) -> Event {
        Event { action, address, bytes, stream: 0, stack: None }
    }

    fn segment(address: u64, bytes: u64, blocks: &[(u64, u64, bool)]) -> Segment {
        let mut next = address;
        let blocks = blocks.iter().map(|&(bytes, requested, active)| {
            next += bytes;
            Block { address: next - bytes, bytes, requested, active }
        });
        let blocks = blocks.collect();
        let large = bytes > 2 * MIB;
        Segment { address, bytes, stream: 0, large, pool: None, expandable: false, blocks }
    }

    fn script(segments: Vec<Segment>, events: Vec<Event>, begin: Begin) -> Script {
        Trace { device: 0, events, stacks: Vec::new(), segments, unknown_events: 0 }
            .history()
            .script(begin)
    }

    fn alloc(block: u32, bytes: u64) -> Operation {
        Operation::Alloc { block, bytes, lane: LANE }
    }

    fn free(block: u32) -> Operation {
        Operation::Free { block }
    }

    #[test]
    fn a_trace_from_the_beginning_is_asked_for_as_it_is() {
        let segments = vec![segment(0, 2 * MIB, &[(512, 4, true), (2 * MIB - 512, 0, false)])];
        let events = vec![
            event(Action::SegmentAlloc, 0, 2 * MIB),
            event(Action::Alloc, 0, 100),
            event(Action::Alloc, 512, 4),
            event(Action::FreeRequested, 0, 100),
            event(Action::Free, 0, 100),
            event(Action::Free, 512, 4),
            event(Action::Alloc, 0, 4),
        ];
        let expected =
            [Operation::Begin, alloc(0, 100), alloc(1, 4), free(0), free(1), alloc(1, 4)];
        for begin in [Begin::AsRecorded, Begin::Afresh] {
            assert_eq!(script(segments.clone(), events.clone(), begin).operations, expected);
        }
    }

    #[test]
    fn what_was_there_before_is_put_back_at_its_place() {
        // A large segment: 3 MiB in use until the end, 5 free, 11.5 for 11 until the first event.
        let blocks = [(3 * MIB, 3 * MIB, true), (17 * MIB, 0, false)];
        let segments = vec![segment(0, 20 * MIB, &blocks)];
        let events = vec![event(Action::Free, 8 * MIB + MIB / 2, 11 * MIB)];
        let exact = script(segments.clone(), events.clone(), Begin::AsRecorded);
        let expected = [
            // The segment.
            alloc(0, 20 * MIB),
            free(0),
            // Its parts.
            alloc(0, 3 * MIB),
            alloc(1, 5 * MIB + MIB / 2),
            alloc(2, 11 * MIB + MIB / 2),
            // Half a MiB is too little to split off.
            free(2),
            alloc(2, 11 * MIB),
            // The free part.
            free(1),
            Operation::Begin,
            free(2),
        ];
        assert_eq!((exact.operations.as_slice(), exact.misplaced), (&expected[..], 0));
        let afresh = script(segments, events, Begin::Afresh);
        let expected = [alloc(0, 3 * MIB), alloc(1, 11 * MIB), Operation::Begin, free(1)];
        assert_eq!(afresh.operations, expected);
    }

    #[test]
    fn free_parts_of_small_segments_are_filled_with_small_blocks() {
        let segments = vec![segment(0, 2 * MIB, &[(512, 1, true), (2 * MIB - 512, 0, false)])];
        let events = vec![event(Action::FreeRequested, 0, 1)];
        let script = script(segments, events, Begin::AsRecorded);
        let expected =
            [alloc(0, 1), alloc(1, MIB), alloc(2, MIB - 512), free(1), free(2), Operation::Begin];
        assert_eq!(script.operations, expected);
    }

    #[test]
    fn who_emptied_the_cache_is_told_by_the_stack_or_by_what_follows() {
        use crate::snapshot::Releaser::{Allocator, Program, Unknown};
        let flushes = |releaser, then: &[Event]| {
            let before = [
                event(Action::SegmentAlloc, 0, 20 * MIB),
                event(Action::SegmentAlloc, 1 << 40, 20 * MIB),
                event(Action::SegmentFree(releaser), 0, 20 * MIB),
            ];
            let segments = vec![segment(1 << 40, 20 * MIB, &[(20 * MIB, 0, false)])];
            let events = [&before, then].concat();
            let script = script(segments, events, Begin::Afresh);
            (script.emptied_by_program, script.emptied_by_allocator, script.guessed)
        };
        let larger = [
            event(Action::SegmentAlloc, 0, 30 * MIB),
            event(Action::Alloc, 0, 30 * MIB),
            event(Action::Free, 0, 30 * MIB),
            event(Action::SegmentFree(Allocator), 0, 30 * MIB),
        ];
        assert_eq!(flushes(Program, &[]), (1, 0, 0));
        assert_eq!(flushes(Allocator, &[]), (0, 1, 0));
        assert_eq!(flushes(Unknown, &[]), (1, 0, 1), "for no reason of the allocator's");
        assert_eq!(flushes(Unknown, &larger), (0, 2, 1), "more than ever was held");
        let failed = [event(Action::OutOfMemory, 0, 30 * MIB)];
        assert_eq!(flushes(Unknown, &failed), (0, 1, 1));
    }

    #[test]
    fn a_request_that_failed_is_asked_for_again() {
        let events = vec![event(Action::OutOfMemory, 0, 512)];
        let script = script(Vec::new(), events, Begin::Afresh);
        assert_eq!(script.operations, [Operation::Begin, alloc(0, 512), free(0)]);
    }

    #[test]
    fn streams_and_pools_are_lanes_of_their_own() {
        let pooled = Segment { pool: Some((0, 1)), ..segment(1 << 30, 2 * MIB, &[(512, 1, true)]) };
        let events = vec![
            event(Action::SegmentAlloc, 1 << 30, 2 * MIB),
            event(Action::Alloc, 1 << 30, 1),
            Event { stream: 7, ..event(Action::Alloc, 0, 1) },
        ];
        let script = script(vec![pooled], events, Begin::Afresh);
        let expected = [Lane { stream: 0, pool: Some((0, 1)) }, Lane { stream: 7, pool: None }];
        assert_eq!(script.lanes, expected);
    }
}
