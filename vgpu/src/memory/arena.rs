//! Handing out parts of larger ranges of memory: best fit, the lowest address among equals, and what is
//! free beside what is given back becomes one with it.

use std::collections::{BTreeMap, BTreeSet};

/// What blocks start at multiples of, as `cudaMalloc` promises its callers (256) and PyTorch wants (512).
const ALIGNMENT: u64 = 512;

/// Chunks of memory, and the blocks in them.
#[derive(Default)]
pub(super) struct Arena {
    chunks: BTreeMap<u64, u64>,
    free: BTreeMap<u64, u64>,
    /// The free ranges by length, then address.
    by_length: BTreeSet<(u64, u64)>,
    used: BTreeMap<u64, u64>,
}

/// `bytes` as a block counts them.
pub(super) fn block_bytes(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(ALIGNMENT)
}

impl Arena {
    /// A block of `bytes`, which [`block_bytes`] gave, if a free range is as large.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let &(length, address) = self.by_length.range((bytes, 0)..).next()?;
        self.remove_free(address, length);
        if length > bytes {
            self.insert_free(address + bytes, length - bytes);
        }
        self.used.insert(address, bytes);
        Some(address)
    }

    /// Gives back the block that starts at `address`; its bytes, if there was one.
    pub(super) fn give_back(&mut self, address: u64) -> Option<u64> {
        let bytes = self.used.remove(&address)?;
        self.put_free(address, bytes);
        Some(bytes)
    }

    /// Adds a chunk, all of it free. Chunks are not joined, even where one follows another.
    pub(super) fn add_chunk(&mut self, address: u64, length: u64) {
        self.chunks.insert(address, length);
        self.put_free(address, length);
    }

    /// Takes a chunk without blocks away, the highest first; its address and length.
    pub(super) fn remove_free_chunk(&mut self) -> Option<(u64, u64)> {
        let whole = |(address, length): &(&u64, &u64)| self.free.get(address) == Some(length);
        let (&address, &length) = self.chunks.iter().rev().find(whole)?;
        self.chunks.remove(&address);
        self.remove_free(address, length);
        Some((address, length))
    }

    /// Whether a block starts at `address`.
    pub(super) fn has_block(&self, address: u64) -> bool {
        self.used.contains_key(&address)
    }

    /// Length of all chunks.
    pub(super) fn length(&self) -> u64 {
        self.chunks.values().sum()
    }

    fn put_free(&mut self, mut address: u64, mut length: u64) {
        if !self.chunks.contains_key(&address)
            && let Some((&before, &bytes)) = self.free.range(..address).next_back()
            && before + bytes == address
        {
            self.remove_free(before, bytes);
            (address, length) = (before, bytes + length);
        }
        let next = address + length;
        if !self.chunks.contains_key(&next)
            && let Some(&bytes) = self.free.get(&next)
        {
            self.remove_free(next, bytes);
            length += bytes;
        }
        self.insert_free(address, length);
    }

    fn insert_free(&mut self, address: u64, length: u64) {
        self.free.insert(address, length);
        self.by_length.insert((length, address));
    }

    fn remove_free(&mut self, address: u64, length: u64) {
        self.free.remove(&address);
        self.by_length.remove(&(length, address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_fit_is_taken_and_neighbours_are_joined_within_a_chunk() {
        let mut arena = Arena::default();
        arena.add_chunk(0x1000, 0x1000);
        arena.add_chunk(0x2000, 0x1000);
        let blocks = [0x400, 0x800, 0x400].map(|bytes| arena.take(bytes).unwrap());
        assert_eq!(blocks, [0x1000, 0x1400, 0x1c00]);
        assert_eq!(arena.give_back(0x1400), Some(0x800));
        assert_eq!(arena.take(0x600), Some(0x1400), "the hole, not the whole chunk behind it");
        assert_eq!(arena.give_back(0x1400), Some(0x600));
        assert_eq!(arena.give_back(0x1000), Some(0x400));
        assert_eq!(arena.give_back(0x1c00), Some(0x400));
        assert_eq!(arena.give_back(0x1c00), None);
        assert_eq!(arena.take(0x1200), None, "a block lies in one chunk");
        assert_eq!(arena.remove_free_chunk(), Some((0x2000, 0x1000)));
        assert_eq!(arena.take(0x1000), Some(0x1000));
        assert_eq!(arena.remove_free_chunk(), None);
        assert_eq!(arena.length(), 0x1000);
    }

    #[test]
    fn blocks_are_whole_units() {
        assert_eq!([0, 1, 512, 513].map(block_bytes), [512, 512, 512, 1024].map(Some));
        assert_eq!(block_bytes(u64::MAX), None);
    }
}
