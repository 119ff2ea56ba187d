//! What was in use before the first event is asked for first.

use super::begin::{Live, Piece};
use super::history::History;
use super::script::{Lane, Operation, Writer};

/// The allocator's unit (`kMinBlockSize` of PyTorch's `c10/core/AllocatorConfig.h`).
const UNIT: u64 = 512;
/// Up to this, blocks are small (`kSmallSize` there); of a segment for large ones no less than this
/// is split off.
const SMALL: u64 = 1 << 20;

/// No segment for small blocks is larger, were it an expandable one on the largest card.
const MOST_SMALL: u64 = 1 << 38;

/// Free parts that are put back; a gigabyte in small ones is a thousand.
const MOST_FILLINGS: usize = 1 << 22;

impl Writer {
    /// One block after the other.
    pub(super) fn put_in(&mut self, history: &History<'_>) {
        for (address, live) in &history.before.live {
            let piece = history.before.pieces.holding(*address);
            let lane = Lane { stream: live.stream, pool: piece.and_then(|(_, piece)| piece.pool) };
            let block = self.alloc(live.requested, lane);
            self.blocks.insert(*address, block);
        }
    }

    /// Segment by segment: while all that came before is in use to the last byte, a request is
    /// answered from this segment and no other. What is free in the end is freed when all stand.
    pub(super) fn put_back(&mut self, history: &History<'_>) {
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
            let block = match bytes == round(live.requested) {
                true => self.alloc(live.requested, lane),
                false => {
                    let block = self.alloc(bytes, lane);
                    to_refit.push((block, live.requested));
                    block
                }
            };
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
