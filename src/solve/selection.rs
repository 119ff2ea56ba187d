//! Which blocks to checkpoint so that a micro-batch fits, and least is computed twice.
//!
//! Block p leaves `saved` and `output` bytes for the backward pass; checkpointed, its output alone.
//! Memory can be at its peak in two places:
//!
//! - where the forward pass ends: all that the blocks leave is there;
//! - in the backward pass of block p, which is whole then, computed again or not: all that the blocks
//!   before it leave is there, and nothing of those behind it.
//!
//! What else is live in these places is taken from the two peaks that are known, that of no block
//! checkpointed and that of all. So each place bounds what may be left by the blocks *before* it, and
//! a late block may be too large for the end of the forward pass but for no block's backward pass.

use crate::survey::BlockCost;
use crate::units::Bytes;
use crate::workload::Blocks;

/// Steps in which bytes are counted, so that sums that may differ are few. What a block saves is
/// rounded up, which for fifty blocks is half a percent of all.
const STEPS: u64 = 1 << 13;

/// Blocks whose bytes differ by less than this share are taken for equal: the allocator rounds up by
/// more or less, as it happens.
const ALIKE: f64 = 0.03;

/// A micro-batch whose blocks are to be chosen.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    blocks: Vec<Block>,
    /// Live where the forward pass ends, besides what blocks leave.
    at_the_end: i64,
    /// Live in the backward pass of any block, besides what blocks leave.
    in_backward: i64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    saved: Bytes,
    output: Bytes,
    /// Of computing it again: nanoseconds, or 1 each where nobody knows the time.
    price: u64,
}

/// What is known of the blocks so far: the best choice that leaves so much.
#[derive(Clone, Copy, Debug)]
struct Partial {
    /// In steps, outputs aside.
    left: u64,
    price: u64,
    chosen: Blocks,
}

impl Selection {
    /// From the peak when no block is checkpointed, `none`, and when all are, `full`.
    pub(super) fn new(blocks: &[BlockCost], none: Bytes, full: Bytes) -> Self {
        let blocks = evened(blocks);
        let all: i64 = blocks.iter().map(|block| signed(block.saved + block.output)).sum();
        let mut before = 0;
        let mut whole = 0;
        for block in &blocks {
            whole = whole.max(before + signed(block.saved + block.output));
            before += signed(block.output);
        }
        Self { blocks, at_the_end: signed(none) - all, in_backward: signed(full) - whole }
    }

    /// The peak to expect of a choice.
    pub(super) fn peak(&self, chosen: Blocks) -> Bytes {
        let mut peak = 0;
        let mut before = 0;
        for (index, block) in (0..).zip(&self.blocks) {
            peak = peak.max(self.in_backward + before + signed(block.saved + block.output));
            let saved = if chosen.contains(index) { Bytes::ZERO } else { block.saved };
            before += signed(saved + block.output);
        }
        Bytes(u64::try_from(peak.max(self.at_the_end + before)).unwrap_or(0))
    }

    /// What a choice computes twice; only to be compared.
    pub(super) fn price(&self, chosen: Blocks) -> u64 {
        chosen.iter().filter_map(|it| self.blocks.get(it as usize)).map(|it| it.price).sum()
    }

    /// The choice whose peak is within `budget` and that computes least twice; of several the one that
    /// leaves less, then the one with the earlier blocks. None when not even all blocks will do, or
    /// there are more than a choice can name.
    ///
    /// Block by block, of all choices that leave as much or more and cost as much or more than another
    /// only the other is kept. Every bound is on what is left so far, so whatever may follow the one
    /// may follow the other: the best choice is among those kept.
    pub(super) fn cheapest(&self, budget: Bytes) -> Option<Blocks> {
        if self.blocks.len() > Blocks::MOST as usize {
            return None;
        }
        let total: u64 = self.blocks.iter().map(|block| block.saved.get()).sum();
        let step = total.div_ceil(STEPS).max(1);
        // Steps that may be left where `others` is live besides.
        let room = |others: i64| {
            let room = u64::try_from(signed(budget) - others).ok()?;
            Some(room / step)
        };
        let mut partial = vec![Partial { left: 0, price: 0, chosen: Blocks::default() }];
        let mut outputs = 0;
        for (index, block) in (0..).zip(&self.blocks) {
            let whole = signed(block.saved + block.output);
            let room = room(self.in_backward + outputs + whole)?;
            partial.retain(|it| it.left <= room);
            let checkpointed = partial.iter().map(|it| Partial {
                price: it.price + block.price,
                chosen: it.chosen.with(index),
                ..*it
            });
            let plain = partial
                .iter()
                .map(|it| Partial { left: it.left + block.saved.get().div_ceil(step), ..*it });
            partial = undominated(checkpointed.chain(plain).collect());
            outputs += signed(block.output);
        }
        let room = room(self.at_the_end + outputs)?;
        // What leaves more costs less.
        partial.iter().rev().find(|it| it.left <= room).map(|it| it.chosen)
    }
}

/// Without those that leave as much as another, or more, and cost as much, or more.
fn undominated(mut partial: Vec<Partial>) -> Vec<Partial> {
    partial.sort_unstable_by_key(|it| (it.left, it.price, it.chosen));
    let mut least = u64::MAX;
    partial.retain(|it| {
        let is_better = it.price < least;
        least = least.min(it.price);
        is_better
    });
    partial
}

/// The blocks, with all that leave about the same bytes made equal: they do the same work, and the noise
/// of a clock or an allocator is not to choose among them. The middle one stands for them.
fn evened(blocks: &[BlockCost]) -> Vec<Block> {
    let nanoseconds = |block: &BlockCost| (block.seconds.max(0.0) * 1e9) as u64;
    let timed = blocks.iter().any(|block| nanoseconds(block) > 0);
    let near = |a: Bytes, b: Bytes| {
        let (a, b) = (a.get() as f64, b.get() as f64);
        (a - b).abs() <= ALIKE * a.max(b)
    };
    let evened = blocks.iter().map(|block| {
        let alike: Vec<_> = blocks
            .iter()
            .filter(|it| near(it.saved, block.saved) && near(it.output, block.output))
            .collect();
        Block {
            saved: Bytes(middle(alike.iter().map(|it| it.saved.get()))),
            output: Bytes(middle(alike.iter().map(|it| it.output.get()))),
            price: if timed { middle(alike.iter().map(|it| nanoseconds(it))) } else { 1 },
        }
    });
    evened.collect()
}

fn middle(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(saved: u64, output: u64, nanoseconds: u32) -> BlockCost {
        BlockCost {
            saved: Bytes(saved),
            output: Bytes(output),
            seconds: f64::from(nanoseconds) / 1e9 + 1e-10,
        }
    }

    /// The same by trying every choice.
    fn by_trying(selection: &Selection, budget: Bytes) -> Option<u64> {
        let count = selection.blocks.len() as u32;
        let choices = (0..1u32 << count)
            .map(|mask| Blocks::new((0..count).filter(|block| mask >> block & 1 == 1)).unwrap());
        let fitting = choices.filter(|chosen| selection.peak(*chosen) <= budget);
        fitting.map(|chosen| selection.price(chosen)).min()
    }

    proptest! {
        #[test]
        fn no_choice_that_fits_computes_less_twice(
            blocks in prop::collection::vec((0u64..1000, 1u64..100, 0u32..50), 1..9),
            others in (0u64..3000, 0u64..3000),
            budget in 0u64..9000,
        ) {
            let blocks: Vec<_> = blocks.into_iter().map(|(s, o, t)| block(s, o, t)).collect();
            let all: u64 = blocks.iter().map(|it| (it.saved + it.output).get()).sum();
            let (none, full) = (Bytes(all + others.0), Bytes(others.1 + 1200));
            let selection = Selection::new(&blocks, none, full);
            let found = selection.cheapest(Bytes(budget));
            prop_assert!(found.is_none_or(|chosen| selection.peak(chosen) <= Bytes(budget)));
            let price = found.map(|chosen| selection.price(chosen));
            prop_assert_eq!(price, by_trying(&selection, Bytes(budget)));
        }
    }

    fn chosen(blocks: &[BlockCost], none: u64, full: u64, budget: u64) -> String {
        let selection = Selection::new(blocks, Bytes(none), Bytes(full));
        selection.cheapest(Bytes(budget)).map_or_else(|| "none".to_owned(), |it| it.to_string())
    }

    #[test]
    fn of_equal_blocks_the_first_ones_are_taken_whatever_the_clock_says() {
        let times = [50, 48, 51, 47, 52, 49];
        let blocks: Vec<_> =
            (99..).zip(times).map(|(saved, time)| block(100 + saved % 2, 10, time)).collect();
        assert_eq!(chosen(&blocks, 1000, 450, 1000), "");
        assert_eq!(chosen(&blocks, 1000, 450, 820), "0-1");
        assert_eq!(chosen(&blocks, 1000, 450, 551), "0-4");
        assert_eq!(chosen(&blocks, 1000, 450, 449), "none");
    }

    #[test]
    fn bytes_that_are_cheap_to_compute_again_go_first() {
        // As in a residual network: early blocks leave much and take little for it.
        let blocks =
            [block(800, 80, 25), block(400, 40, 22), block(200, 20, 20), block(100, 10, 20)];
        assert_eq!(chosen(&blocks, 2000, 1100, 1300), "0");
        assert_eq!(chosen(&blocks, 2000, 1100, 1600), "1");
    }

    #[test]
    fn a_late_block_that_is_gone_by_the_time_of_the_peak_is_left_alone() {
        // All checkpointed, the peak is in the first block's backward pass: the last two are free.
        let blocks = [block(900, 10, 5), block(300, 10, 5), block(300, 10, 5)];
        assert_eq!(chosen(&blocks, 1700, 1100, 1100), "0");
    }

    #[test]
    fn many_different_blocks_are_chosen_from_in_time() {
        let blocks: Vec<_> = (0..100u32)
            .map(|index| {
                let odd = u64::from(index * 7919 % 1009) << 20;
                block(odd + 12_345, 1 << 20, index * 104_729 % 1013)
            })
            .collect();
        let all: u64 = blocks.iter().map(|it| (it.saved + it.output).get()).sum();
        let selection = Selection::new(&blocks, Bytes(all + (1 << 30)), Bytes(3 << 30));
        let budget = Bytes(all / 2);
        let chosen = selection.cheapest(budget).unwrap();
        assert!(selection.peak(chosen) <= budget);
        // What a little more room would buy is little: nothing was given away.
        let fewer = selection.cheapest(Bytes(all / 2 + all / 100)).unwrap();
        assert!(selection.price(fewer) <= selection.price(chosen));
        assert!(selection.price(chosen) - selection.price(fewer) < selection.price(chosen) / 20);
    }

    #[test]
    fn where_no_time_is_known_the_fewest_blocks_are_taken() {
        let blocks = [(400, 0.0), (100, 0.0), (100, 0.0)].map(|(saved, seconds)| BlockCost {
            saved: Bytes(saved),
            output: Bytes(10),
            seconds,
        });
        assert_eq!(chosen(&blocks, 1000, 600, 800), "0");
    }
}
