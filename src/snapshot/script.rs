//! What an allocator has to be asked, so that it does again what it did in a trace.

use std::collections::HashMap;

use super::begin::{Live, Piece};
use super::flush::Flushes;
use super::history::History;
use super::{Action, Event, Pool};

/// The allocator's unit (`kMinBlockSize` of PyTorch's `c10/core/AllocatorConfig.h`).
const UNIT: u64 = 512;
/// Up to this, blocks are small (`kSmallSize` there); of a segment for large ones no less than this
/// is split off.
const SMALL: u64 = 1 << 20;

/// No segment for small blocks is larger, were it an expandable one on the largest card.
const MOST_SMALL: u64 = 1 << 38;

/// Free parts that are put back; a gigabyte in small ones is a thousand.
const MOST_FILLINGS: usize = 1 << 22;

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

#[derive(Default)]
struct Writer {
    script: Script,
    lanes: HashMap<Lane, u32>,
    blocks: HashMap<u64, u32>,
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

    fn put_in(&mut self, history: &History<'_>) {
        for (address, live) in &history.before.live {
            let piece = history.before.pieces.holding(*address);
            let lane = Lane { stream: live.stream, pool: piece.and_then(|(_, piece)| piece.pool) };
            let block = self.alloc(live.requested, lane);
            self.blocks.insert(*address, block);
        }
    }

    /// Segment by segment: while all that came before is in use to the last byte, a request is
    /// answered from this segment and no other. What is free in the end is freed when all stand.
    fn put_back(&mut self, history: &History<'_>) {
        let mut fillings = Vec::new();
        let mut live = history.before.live.iter().peekable();
        for (start, piece) in history.before.pieces.iter() {
            let mut inside = Vec::new();
            while let Some((address, block)) =
                live.next_if(|(address, _)| **address - start.min(**address) < piece.bytes)
            {
                match *address >= start {
                    true => inside.push((*address, block)),
                    false => self.misplace(*address, block),
                }
            }
            self.put_back_piece(start, piece, &inside, &mut fillings);
        }
        for (address, block) in live {
            self.misplace(*address, block);
        }
        for block in fillings {
            self.free(block);
        }
    }

    /// A block that lies in no segment is put where the allocator likes.
    fn misplace(&mut self, address: u64, live: &Live) {
        self.script.misplaced += 1;
        let block = self.alloc(live.requested, Lane { stream: live.stream, pool: None });
        self.blocks.insert(address, block);
    }

    fn put_back_piece(
        &mut self,
        start: u64,
        piece: &Piece,
        inside: &[(u64, &Live)],
        fillings: &mut Vec<u32>,
    ) {
        let lane = Lane { stream: piece.stream, pool: piece.pool };
        if piece.large && !piece.expandable {
            // Whole, it makes a segment of this size, and is free again for its parts.
            let whole = self.alloc(piece.bytes, lane);
            self.free(whole);
        }
        let end = start + piece.bytes;
        let mut at = start;
        let mut to_refit = Vec::new();
        for (index, (address, live)) in inside.iter().enumerate() {
            self.fill(*address - at, lane, piece.large, fillings);
            let next = inside.get(index + 1).map_or(end, |(next, _)| *next);
            let bytes = size(live, next - address, piece).min(next - address);
            let block = self.alloc(bytes, lane);
            if bytes != round(live.requested) {
                to_refit.push((block, live.requested));
            }
            self.blocks.insert(*address, block);
            self.script.misplaced += u64::from(piece.large && bytes <= SMALL);
            at = address + bytes;
        }
        self.fill(end - at, lane, piece.large, fillings);
        // The allocator gives more than was asked for where too little would be left over. Such a
        // block is asked for again when nothing else is free.
        for (block, requested) in to_refit {
            self.script.operations.push(Operation::Free { block });
            let lane = self.lane(lane);
            self.script.operations.push(Operation::Alloc { block, bytes: requested, lane });
        }
    }

    /// Takes what is free in a segment, for now.
    fn fill(&mut self, bytes: u64, lane: Lane, large: bool, fillings: &mut Vec<u32>) {
        match (large, bytes) {
            (_, 0) => {}
            _ if fillings.len() >= MOST_FILLINGS => self.script.misplaced += 1,
            // No such thing comes of an allocator; a file may say anything.
            (true, ..=SMALL) | (false, MOST_SMALL..) => self.script.misplaced += 1,
            (true, _) => fillings.push(self.alloc(bytes, lane)),
            (false, mut rest) => {
                while rest > 0 {
                    fillings.push(self.alloc(rest.min(SMALL), lane));
                    rest -= rest.min(SMALL);
                }
            }
        }
    }

    fn alloc(&mut self, bytes: u64, lane: Lane) -> u32 {
        let block = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        let lane = self.lane(lane);
        self.script.operations.push(Operation::Alloc { block, bytes, lane });
        block
    }

    fn free(&mut self, block: u32) {
        self.script.operations.push(Operation::Free { block });
        self.free.push(block);
    }

    fn lane(&mut self, lane: Lane) -> u32 {
        let next = self.script.lanes.len() as u32;
        *self.lanes.entry(lane).or_insert_with(|| {
            self.script.lanes.push(lane);
            next
        })
    }
}

fn round(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(UNIT)
}

/// How much a block takes of its segment. From the end it is known; else it is what was asked for,
/// rounded, and in a segment for large blocks also what lies after it and is too little for a block.
fn size(live: &Live, room: u64, piece: &Piece) -> u64 {
    let rounded = round(live.requested);
    live.bytes.unwrap_or(match room.checked_sub(rounded) {
        Some(rest) if piece.large && !piece.expandable && rest <= SMALL => room,
        _ => rounded,
    })
}
