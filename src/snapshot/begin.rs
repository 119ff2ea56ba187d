//! What there was before the first event. A trace may begin in the midst of a program, when recording
//! was turned on late or its ring buffer overflowed; but the end is known, and every event can be
//! undone.

use std::collections::BTreeMap;

use super::{Action, Event, Pool, Segment, Trace};

/// Memory of the device that the allocator held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    pub(super) stream: u64,
    pub(super) large: bool,
    pub(super) pool: Option<Pool>,
    pub(super) expandable: bool,
}

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) requested: u64,
    /// Its rounded size, where it still is in use at the end.
    pub(super) bytes: Option<u64>,
    pub(super) stream: u64,
}

/// The allocator before the first event, and what only the way back to it tells.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// By address.
    pub(super) pieces: Pieces,
    /// By address.
    pub(super) live: BTreeMap<u64, Live>,
    /// Of each event that hands out a block, the pool it came from.
    pub(super) pools: Vec<Option<Pool>>,
    /// Events that what came later contradicts.
    pub(super) contradictions: u64,
}

impl Before {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut before = Self { pools: vec![None; trace.events.len()], ..Self::default() };
        for segment in &trace.segments {
            before.pieces.add(segment.address, Piece::of(segment));
            for block in segment.blocks.iter().filter(|block| block.active) {
                let live = Live {
                    requested: block.requested,
                    bytes: Some(block.bytes),
                    stream: segment.stream,
                };
                before.live.insert(block.address, live);
            }
        }
        for (index, event) in trace.events.iter().enumerate().rev() {
            before.undo(index, event);
        }
        before
    }

    fn undo(&mut self, index: usize, event: &Event) {
        let consistent = match event.action {
            Action::Alloc => {
                let piece = self.pieces.holding(event.address);
                self.pools[index] = piece.and_then(|(_, piece)| piece.pool);
                self.live.remove(&event.address).is_some()
            }
            Action::Free => {
                let live = Live { requested: event.bytes, bytes: None, stream: event.stream };
                self.live.insert(event.address, live).is_none()
            }
            Action::SegmentAlloc => self.pieces.remove(event.address, event.bytes),
            Action::SegmentFree(_) => {
                // Segments for small blocks are of 2 MiB, all others larger (`kSmallBuffer` of
                // PyTorch's `c10/core/AllocatorConfig.h`).
                let piece = Piece {
                    bytes: event.bytes,
                    stream: event.stream,
                    large: event.bytes > 2 << 20,
                    pool: None,
                    expandable: false,
                };
                self.pieces.add(event.address, piece)
            }
            Action::FreeRequested | Action::OutOfMemory => true,
        };
        self.contradictions += u64::from(!consistent);
    }
}

impl Piece {
    fn of(segment: &Segment) -> Self {
        let Segment { bytes, stream, large, pool, expandable, .. } = *segment;
        Self { bytes, stream, large, pool, expandable }
    }
}

/// What the allocator holds of the device, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(BTreeMap<u64, Piece>);

impl Pieces {
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Piece)> {
        self.0.iter().map(|(address, piece)| (*address, piece))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.values().fold(0, |sum, piece| sum.saturating_add(piece.bytes))
    }

    /// The one that an address lies in, and where it begins.
    pub(super) fn holding(&self, address: u64) -> Option<(u64, &Piece)> {
        let (start, piece) = self.0.range(..=address).next_back()?;
        (address - start < piece.bytes).then_some((*start, piece))
    }

    /// Adds one. Says whether its place was free.
    fn add(&mut self, address: u64, piece: Piece) -> bool {
        let next = self.0.range(address..).next();
        let free = next.is_none_or(|(next, _)| next - address >= piece.bytes)
            && self.holding(address).is_none();
        if free && piece.bytes > 0 {
            self.0.insert(address, piece);
        }
        free
    }

    /// Takes a range out, which is one piece or, of an expandable segment, a part of one or several.
    /// Says whether all of it was there.
    fn remove(&mut self, address: u64, bytes: u64) -> bool {
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let Some((start, &piece)) = self.holding(at) else { return false };
            self.0.remove(&start);
            let piece_end = start + piece.bytes;
            if start < at {
                self.0.insert(start, Piece { bytes: at - start, ..piece });
            }
            if end < piece_end {
                self.0.insert(end, Piece { bytes: piece_end - end, ..piece });
            }
            at = piece_end.min(end);
        }
        true
    }
}
