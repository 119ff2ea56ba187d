use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits of a word of the mask.
const WORD: u32 = u64::BITS;

/// A set of a model's blocks, counted from 0 in the order of the forward pass. On the command line
/// `0-4+8` is the blocks 0 to 4 and 8; in JSON a set is a list of indices.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
#[schemars(with = "Vec<u32>")]
pub struct Blocks {
    /// Of each word the lowest bit is the first block; the last word comes first, so that sets are
    /// ordered as numbers.
    mask: [u64; Self::MOST.div_ceil(WORD) as usize],
}

impl Blocks {
    /// Blocks that a set can tell apart; a model with more is checkpointed in full or not at all.
    pub const MOST: u32 = 256;

    /// The set of these blocks.
    ///
    /// # Errors
    /// When one is beyond [`Self::MOST`], in words.
    pub fn new(blocks: impl IntoIterator<Item = u32>) -> Result<Self, String> {
        let mut set = Self::default();
        for block in blocks {
            if block >= Self::MOST {
                return Err(format!("block {block} is beyond the first {}", Self::MOST));
            }
            let (word, bit) = place(block);
            set.mask[word] |= bit;
        }
        Ok(set)
    }

    /// The set with `block` in it. What is beyond [`Self::MOST`] is in no set.
    #[must_use]
    pub fn with(mut self, block: u32) -> Self {
        if block < Self::MOST {
            let (word, bit) = place(block);
            self.mask[word] |= bit;
        }
        self
    }

    /// Whether `block` is in the set.
    pub fn contains(self, block: u32) -> bool {
        let (word, bit) = place(block.min(Self::MOST - 1));
        block < Self::MOST && self.mask[word] & bit != 0
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }

    /// The last one.
    pub fn last(self) -> Option<u32> {
        self.iter().last()
    }

    /// Their indices, ascending.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..Self::MOST).filter(move |block| self.contains(*block))
    }

    /// Blocks in a row, as the first and the last of each row.
    pub fn rows(self) -> Vec<(u32, u32)> {
        let mut rows: Vec<(u32, u32)> = Vec::new();
        for block in self.iter() {
            match rows.last_mut() {
                Some((_, last)) if *last + 1 == block => *last = block,
                _ => rows.push((block, block)),
            }
        }
        rows
    }
}

fn place(block: u32) -> (usize, u64) {
    let words = Blocks::MOST.div_ceil(WORD);
    ((words - 1 - block / WORD) as usize, 1 << (block % WORD))
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        f.pad(&self.rows().iter().map(row).collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Blocks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut blocks = Vec::new();
        for row in text.split('+') {
            let (first, last) = row.split_once('-').unwrap_or((row, row));
            let index = |text: &str| {
                let digits = text.bytes().all(|it| it.is_ascii_digit());
                text.parse::<u32>().ok().filter(|_| digits)
            };
            match (index(first), index(last)) {
                // Not beyond what a set holds, before a range of billions is gone through.
                (Some(first), Some(last)) if first <= last && last < Self::MOST => {
                    blocks.extend(first..=last);
                }
                _ => return Err(format!("`{row}` is no block from 0 to {}", Self::MOST - 1)),
            }
        }
        Self::new(blocks)
    }
}

impl TryFrom<Vec<u32>> for Blocks {
    type Error = String;

    fn try_from(blocks: Vec<u32>) -> Result<Self, Self::Error> {
        Self::new(blocks)
    }
}

impl From<Blocks> for Vec<u32> {
    fn from(blocks: Blocks) -> Self {
        blocks.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_read_as_it_is_written() {
        for text in ["0", "0-4", "0-4+8", "3+5+7-9", "0+63-64+255"] {
            assert_eq!(text.parse::<Blocks>().unwrap().to_string(), text);
        }
        assert_eq!("8+0-2+1".parse::<Blocks>().unwrap().to_string(), "0-2+8");
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["", "+", "4-2", "-", "1-", "a", "256", "0-4294967295", "+1", "1,2"] {
            assert!(text.parse::<Blocks>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Blocks>("[1, 256]").is_err());
    }

    #[test]
    fn in_json_it_is_a_list() {
        let set = Blocks::new([70, 3, 3]).unwrap();
        assert_eq!(serde_json::to_string(&set).unwrap(), "[3,70]");
        assert_eq!(serde_json::from_str::<Blocks>("[70, 3]").unwrap(), set);
        assert_eq!((set.count(), set.last()), (2, Some(70)));
        assert!(set.contains(70) && !set.contains(71) && !set.contains(326));
    }

    #[test]
    fn of_as_many_blocks_those_that_come_first_are_the_lesser_set() {
        let set = |blocks: &[u32]| Blocks::new(blocks.iter().copied()).unwrap();
        assert!(set(&[0, 1]) < set(&[0, 2]) && set(&[0, 2]) < set(&[1, 2]));
        assert!(set(&[5, 63]) < set(&[5, 64]));
    }
}
