//! Which micro-batch to try next, so that few tries find the largest that fits.
//!
//! Memory is almost affine in the micro-batch, but not monotonic to the byte: a line through two
//! tries says where to look, and only a try says what fits.

use std::collections::BTreeMap;

use crate::measurement::Verdict;
use crate::units::Bytes;

/// Tries that may follow the line before halving takes over; the line is usually right at once, and
/// where it is not, halving bounds the number of tries by the logarithm.
const GUIDED: usize = 6;
/// Tries that may fail for themselves before a setting is given up.
const PATIENCE: usize = 2;
/// A whole target up to this is tried in any case when smaller micro-batches do not fit: without
/// accumulation no gradients are kept, which may weigh more than so few samples.
const SMALL: u32 = 4;

/// What one try said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Whether it fits.
    pub(super) verdict: Verdict,
    /// Peaks, of a try that ran to the end.
    pub(super) peaks: Option<Peaks>,
}

/// The peaks that the line is drawn through, context included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peaks {
    /// What the device sees; grows in steps of the allocator's segments.
    pub(super) device: Bytes,
    /// What tensors take of it; grows smoothly.
    pub(super) allocated: Bytes,
    /// Gradients, which a step that does not accumulate need not keep.
    pub(super) gradients: Bytes,
}

/// The search for one setting.
#[derive(Debug)]
pub(super) struct Search<'a> {
    sizes: &'a [u32],
    budget: Bytes,
    seen: BTreeMap<usize, Seen>,
}

impl<'a> Search<'a> {
    /// Among `sizes`, ascending. The last is the whole target in one micro-batch.
    pub(super) fn new(sizes: &'a [u32], budget: Bytes) -> Self {
        Self { sizes, budget, seen: BTreeMap::new() }
    }

    /// Takes in what a try of `size` said.
    pub(super) fn take_in(&mut self, size: u32, seen: Seen) {
        if let Ok(index) = self.sizes.binary_search(&size) {
            self.seen.insert(index, seen);
        }
    }

    /// The size to try next; `None` when the largest that fits is known, or given up.
    pub(super) fn next(&self) -> Option<u32> {
        self.next_index().map(|index| self.sizes[index])
    }

    /// The largest size that was tried and fits.
    pub(super) fn largest(&self) -> Option<u32> {
        self.largest_index().map(|index| self.sizes[index])
    }

    /// The size after the largest that fits, when it was tried and does not fit. Sizes whose try
    /// failed for itself are passed over.
    pub(super) fn successor(&self) -> Option<u32> {
        let after = self.largest_index().map_or(0, |index| index + 1);
        let index = (after..self.sizes.len()).find(|index| !self.failed(*index))?;
        self.seen.contains_key(&index).then(|| self.sizes[index])
    }

    fn next_index(&self) -> Option<usize> {
        let failures = self.seen.values().filter(|seen| seen.verdict == Verdict::Unknown).count();
        if failures >= PATIENCE {
            return None;
        }
        let Some(largest) = self.largest_index() else {
            return match (0..self.sizes.len()).find(|index| !self.failed(*index)) {
                Some(first) if !self.seen.contains_key(&first) => Some(first),
                _ => self.whole_target(None),
            };
        };
        let end = (largest + 1..self.sizes.len())
            .find(|index| self.seen.contains_key(index) && !self.failed(*index))
            .unwrap_or(self.sizes.len());
        let open: Vec<usize> =
            (largest + 1..end).filter(|index| !self.seen.contains_key(index)).collect();
        match open.as_slice() {
            [] => self.whole_target(Some(largest)),
            [first, ..] if self.line().is_none() => Some(*first),
            open if self.seen.len() < GUIDED => {
                let before = open.partition_point(|index| Some(*index) <= self.predicted());
                Some(open[before.saturating_sub(1)])
            }
            open => Some(open[open.len() / 2]),
        }
    }

    /// The whole target at once, where it may fit though smaller micro-batches do not.
    fn whole_target(&self, largest: Option<usize>) -> Option<usize> {
        let last = self.sizes.len().checked_sub(1)?;
        if last == 0 || self.seen.contains_key(&last) {
            return None;
        }
        let plausible = match (largest, self.line()) {
            (Some(_), Some(line)) => {
                line.at(self.sizes[last]) - line.gradients <= self.budget.get() as f64
            }
            _ => self.sizes[last] <= SMALL,
        };
        plausible.then_some(last)
    }

    /// Where the line crosses the budget: the last index that should fit.
    fn predicted(&self) -> Option<usize> {
        let line = self.line()?;
        let budget = self.budget.get() as f64;
        let fitting = self.sizes.partition_point(|size| line.at(*size) <= budget);
        Some(fitting.saturating_sub(1))
    }

    fn line(&self) -> Option<Line> {
        let whole = self.sizes.len() - 1;
        let mut ran = self.seen.iter().rev().filter_map(|(index, seen)| {
            let kind = *index < whole || whole == 0;
            Some((f64::from(self.sizes[*index]), seen.peaks.filter(|_| kind)?))
        });
        let (far, high) = ran.next()?;
        let (near, low) = ran.next()?;
        let slope = |of: fn(Peaks) -> Bytes| {
            ((of(high).get() as f64 - of(low).get() as f64) / (far - near)).max(0.0)
        };
        Some(Line {
            from: far,
            device: high.device.get() as f64,
            allocated: high.allocated.get() as f64,
            slope_device: slope(|peaks| peaks.device),
            slope_allocated: slope(|peaks| peaks.allocated),
            gradients: high.gradients.get() as f64,
        })
    }

    fn largest_index(&self) -> Option<usize> {
        self.seen
            .iter()
            .rev()
            .find(|(_, seen)| seen.verdict == Verdict::Fits)
            .map(|(index, _)| *index)
    }

    fn failed(&self, index: usize) -> bool {
        self.seen.get(&index).is_some_and(|seen| seen.verdict == Verdict::Unknown)
    }
}

/// Two lines from the same point: what the device sees, and what tensors alone take.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: f64,
    device: f64,
    allocated: f64,
    slope_device: f64,
    slope_allocated: f64,
    gradients: f64,
}

impl Line {
    /// Bytes at `size`, by the line that asks for more.
    fn at(&self, size: u32) -> f64 {
        let distance = f64::from(size) - self.from;
        let device = self.device + self.slope_device * distance;
        device.max(self.allocated + self.slope_allocated * distance)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A workload whose memory is affine with bumps, on a GPU of `budget` bytes.
    #[derive(Clone, Debug)]
    struct Synthetic {
        sizes: Vec<u32>,
        fixed: u64,
        slope: u64,
        bumps: Vec<u64>,
        flaky: Option<usize>,
        budget: u64,
    }

    impl Synthetic {
        fn bytes(&self, size: u32) -> u64 {
            let bump = self.bumps[size as usize % self.bumps.len()];
            self.fixed + self.slope * u64::from(size) + bump
        }

        fn seen(&self, size: u32) -> Seen {
            let index = self.sizes.binary_search(&size).unwrap();
            let bytes = self.bytes(size);
            let verdict = match self.flaky {
                Some(flaky) if flaky == index => Verdict::Unknown,
                _ if bytes <= self.budget => Verdict::Fits,
                _ => Verdict::TooLarge,
            };
            let peaks = (verdict == Verdict::Fits).then(|| Peaks {
                // Segments of 20 MiB.
                device: Bytes(bytes.next_multiple_of(20 << 20)).min(Bytes(self.budget)),
                allocated: Bytes(bytes),
                gradients: Bytes(self.fixed / 4),
            });
            Seen { verdict, peaks }
        }

        fn run(&self) -> (Option<u32>, Option<u32>, Vec<u32>) {
            let mut search = Search::new(&self.sizes, Bytes(self.budget));
            let mut tried = Vec::new();
            while let Some(size) = search.next() {
                assert!(!tried.contains(&size), "{size} tried twice: {tried:?}");
                tried.push(size);
                search.take_in(size, self.seen(size));
            }
            (search.largest(), search.successor(), tried)
        }
    }

    fn synthetic() -> impl Strategy<Value = Synthetic> {
        let sizes = prop_oneof![
            (1u32..2000).prop_map(|target| (1..=target).collect::<Vec<_>>()),
            (1u32..5000).prop_map(|target| {
                (1..=target).filter(|size| target.is_multiple_of(*size)).collect()
            }),
        ];
        (
            sizes,
            0u64..3 << 30,
            1u64 << 10..256 << 20,
            prop::collection::vec(0u64..200 << 20, 1..9),
            prop::option::weighted(0.2, 0usize..6),
        )
            .prop_map(|(sizes, fixed, slope, bumps, flaky)| Synthetic {
                sizes,
                fixed,
                slope,
                bumps,
                flaky,
                budget: 4 << 30,
            })
    }

    proptest! {
        #[test]
        fn what_is_returned_was_tried_and_fits(case in synthetic()) {
            let (largest, _, tried) = case.run();
            if let Some(largest) = largest {
                prop_assert!(tried.contains(&largest));
                prop_assert_eq!(case.seen(largest).verdict, Verdict::Fits);
            }
        }

        #[test]
        fn the_successor_was_tried_and_does_not_fit(case in synthetic()) {
            let (largest, successor, tried) = case.run();
            let after = largest.map_or(0, |size| case.sizes.binary_search(&size).unwrap() + 1);
            let failed = |index: usize| case.flaky == Some(index) && tried.contains(&case.sizes[index]);
            match (after..case.sizes.len()).find(|index| !failed(*index)) {
                None => prop_assert_eq!(successor, None),
                Some(index) => {
                    prop_assert_eq!(successor, Some(case.sizes[index]), "tried {:?}", tried);
                    prop_assert_eq!(case.seen(case.sizes[index]).verdict, Verdict::TooLarge);
                }
            }
        }

        #[test]
        fn tries_are_few(case in synthetic()) {
            let (_, _, tried) = case.run();
            let halvings = (case.sizes.len() as f64).log2().ceil() as usize;
            prop_assert!(tried.len() <= GUIDED + 2 + halvings, "{:?}", tried);
        }

        #[test]
        fn without_bumps_the_largest_that_fits_is_found(mut case in synthetic()) {
            case.bumps = vec![0];
            case.flaky = None;
            let expected = case.sizes.iter().rev().find(|size| case.bytes(**size) <= case.budget);
            prop_assert_eq!(case.run().0, expected.copied());
        }
    }

    fn affine(sizes: Vec<u32>, fixed_mib: u64, slope_mib: u64) -> Synthetic {
        Synthetic {
            sizes,
            fixed: fixed_mib << 20,
            slope: slope_mib << 20,
            bumps: vec![0],
            flaky: None,
            budget: 4 << 30,
        }
    }

    #[test]
    fn a_straight_line_takes_one_two_the_largest_and_its_successor() {
        let (largest, successor, tried) = affine((1..=64).collect(), 1000, 100).run();
        assert_eq!((largest, successor), (Some(30), Some(31)));
        assert_eq!(tried, [1, 2, 30, 31]);
    }

    #[test]
    fn a_target_that_fits_whole_takes_three_tries() {
        let (largest, successor, tried) = affine(vec![1, 2, 4, 8, 16, 32, 64], 100, 1).run();
        assert_eq!((largest, successor), (Some(64), None));
        assert_eq!(tried, [1, 2, 64]);
    }

    #[test]
    fn when_not_even_one_sample_fits_one_try_tells() {
        let (largest, successor, tried) = affine((1..=64).collect(), 5000, 100).run();
        assert_eq!((largest, successor), (None, Some(1)));
        assert_eq!(tried, [1]);
    }

    #[test]
    fn a_whole_target_without_kept_gradients_is_tried_where_it_may_fit() {
        // At 32 the line is over the budget, but by less than the gradients.
        let mut search = Search::new(&[1, 2, 4, 8, 16, 32], Bytes(1000));
        let seen = |device: u64, verdict| Seen {
            verdict,
            peaks: Some(Peaks {
                device: Bytes(device),
                allocated: Bytes(device),
                gradients: Bytes(200),
            }),
        };
        for size in [1, 2, 16] {
            assert_eq!(search.next(), Some(size));
            search.take_in(size, seen(100 + 30 * u64::from(size), Verdict::Fits));
        }
        assert_eq!(search.next(), Some(32));
        search.take_in(32, seen(980, Verdict::Fits));
        assert_eq!((search.next(), search.largest()), (None, Some(32)));
    }

    #[test]
    fn a_setting_that_keeps_failing_is_given_up() {
        let mut search = Search::new(&[1, 2, 4, 8], Bytes(1000));
        for size in [1, 2] {
            assert_eq!(search.next(), Some(size));
            search.take_in(size, Seen { verdict: Verdict::Unknown, peaks: None });
        }
        assert_eq!((search.next(), search.largest(), search.successor()), (None, None, None));
    }
}
