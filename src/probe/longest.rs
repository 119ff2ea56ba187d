//! How long a sample may be that fits alone.

use super::campaign::seen;
use super::search::{Search, Seen};
use super::{Campaign, Prober};
use crate::error::Error;
use crate::measurement::{Measurement, Point, Setting, Verdict};
use crate::units::Bytes;
use crate::workload::Workload;

/// Lengths that are tried without having been asked for are multiples of this.
const STEP: u32 = 64;
/// Of longer contexts, of the power of two that makes so many steps: nearer nobody needs to know, and
/// each halving of the step may cost a try.
const STEPS: u32 = 128;

/// The longest samples of a setting that fit with a micro-batch of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Longest {
    /// The setting.
    pub setting: Setting,
    /// What was tried for it, in order, beside what was known.
    pub tried: Vec<Measurement>,
    /// Tokens of the longest sample that was tried and fits; none where none does.
    pub fits: Option<u32>,
    /// Tokens of the next longer one, tried and found too large; none where there is no longer one.
    pub next: Option<u32>,
    /// The search came to its end.
    pub complete: bool,
}

impl Longest {
    /// Nothing is known yet.
    pub fn new(setting: Setting) -> Self {
        Self { setting, tried: Vec::new(), fits: None, next: None, complete: false }
    }

    /// Looks among the `asked` lengths and, up to `most` tokens, multiples of 64; of more than a 128th
    /// part of `most` where that is longer. Memory is as affine in
    /// the length as in the micro-batch, so the same search finds it; of what is `known`, the points
    /// of one sample tell where to begin.
    ///
    /// # Errors
    /// As [`Prober::probe`]; what is known by then is in `self`.
    pub fn search(
        &mut self,
        campaign: &Campaign<'_>,
        (asked, most): (&[u32], u32),
        known: &[&Measurement],
        prober: &mut dyn Prober,
    ) -> Result<(), Error> {
        let lengths = candidates(asked, most);
        let budget = campaign.budget;
        let point = Point::to_probe(self.setting, 1, campaign.goal);
        let mut search = Search::new(&lengths, budget);
        for (tokens, known) in nearest(known, point, campaign) {
            search.take_in(tokens, of_length(known, campaign));
        }
        self.take_over(&search);
        while let Some(tokens) = search.next() {
            let workload = Workload { sequence: Some(tokens), ..campaign.workload.clone() };
            match prober.probe(&workload, point) {
                Ok(measurement) => {
                    search.take_in(tokens, of_length(&measurement, campaign));
                    self.tried.push(measurement);
                }
                // It may take other lengths.
                Err(error) if error.is_of_users_code() => {
                    search.take_in(tokens, Seen { verdict: Verdict::Unknown, peaks: None });
                }
                Err(error) => return Err(error),
            }
            self.take_over(&search);
        }
        self.complete = true;
        Ok(())
    }

    fn take_over(&mut self, search: &Search<'_>) {
        self.fits = search.largest();
        self.next = search.successor();
    }
}

/// Ascending.
fn candidates(asked: &[u32], most: u32) -> Vec<u32> {
    let step = most.div_ceil(STEPS).checked_next_power_of_two().unwrap_or(1 << 31).max(STEP);
    let multiples = (1..=most / step).map(|count| count * step);
    let mut lengths: Vec<u32> = multiples.chain(asked.iter().copied()).chain([most]).collect();
    lengths.retain(|tokens| *tokens <= most);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// The two longest that fit and the shortest that does not: a line and where it ends. More would only
/// use up the tries that may follow the line.
fn nearest<'a>(
    known: &[&'a Measurement],
    point: Point,
    campaign: &Campaign<'_>,
) -> Vec<(u32, &'a Measurement)> {
    let of_point = known.iter().filter(|known| known.point == point);
    let mut known: Vec<(u32, &Measurement)> =
        of_point.filter_map(|known| Some((known.sequence?, *known))).collect();
    known.sort_by_key(|(tokens, _)| *tokens);
    let verdict = |known: &Measurement| known.verdict(campaign.budget);
    let fitting = known.iter().rev().filter(|(_, known)| verdict(known) == Verdict::Fits).take(2);
    let too_large = known
        .iter()
        .find(|(_, known)| matches!(verdict(known), Verdict::TooLarge | Verdict::Tight));
    fitting.chain(too_large).copied().collect()
}

/// In the eyes of the search. All lengths accumulate alike, so that none is without gradients.
fn of_length(measurement: &Measurement, campaign: &Campaign<'_>) -> Seen {
    let mut seen = seen(measurement, campaign.budget);
    if let Some(peaks) = &mut seen.peaks {
        peaks.gradients = Bytes::ZERO;
    }
    seen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::campaign::tests::{Affine, setting, workload};
    use super::*;
    use crate::workload::{Checkpointing, Goal, Precision};

    const GOAL: Goal = Goal { target_batch: 64, world_size: 1, ragged: false };
    const BUDGET: Bytes = Bytes(10_000);

    fn of_tokens(workload: &Workload, _: Setting) -> (u64, u64) {
        // 4000 fixed, 5 a token: 1200 tokens of one sample fill the budget.
        (4000, 5 * u64::from(workload.sequence.unwrap()))
    }

    /// With what a campaign at these lengths would know.
    fn longest(known: &[u32], asked: &[u32], most: u32) -> (Longest, Result<(), Error>) {
        search(known, asked, most, &mut Affine::new(BUDGET, of_tokens))
    }

    fn search(
        known: &[u32],
        asked: &[u32],
        most: u32,
        prober: &mut Affine,
    ) -> (Longest, Result<(), Error>) {
        let workload = workload();
        let campaign = Campaign { workload: &workload, goal: &GOAL, settings: &[], budget: BUDGET };
        let setting = setting(Precision::Bf16, Checkpointing::Full);
        let point = Point::to_probe(setting, 1, &GOAL);
        let known: Vec<_> = known
            .iter()
            .map(|tokens| {
                let workload = Workload { sequence: Some(*tokens), ..workload.clone() };
                Affine::new(BUDGET, of_tokens).probe(&workload, point).unwrap()
            })
            .collect();
        let known: Vec<_> = known.iter().collect();
        let mut longest = Longest::new(setting);
        let ended = longest.search(&campaign, (asked, most), &known, prober);
        (longest, ended)
    }

    fn tokens(longest: &Longest) -> Vec<u32> {
        longest.tried.iter().filter_map(|known| known.sequence).collect()
    }

    #[test]
    fn what_is_known_to_fit_at_the_most_is_not_tried_again() {
        let (longest, ended) = longest(&[256, 512, 1024], &[256, 512, 1024], 1024);
        assert!(ended.is_ok() && longest.complete);
        assert_eq!((longest.fits, longest.next), (Some(1024), None));
        assert!(longest.tried.is_empty(), "{:?}", tokens(&longest));
    }

    #[test]
    fn a_line_through_known_lengths_leads_to_the_longest_and_its_successor() {
        let (longest, _) = longest(&[256, 512, 1024, 2048], &[256, 512, 1024, 2048], 2048);
        assert_eq!((longest.fits, longest.next), (Some(1152), Some(1216)));
        assert_eq!(tokens(&longest), [1152, 1216]);
    }

    #[test]
    fn shorter_lengths_than_were_asked_for_are_found_where_none_of_those_fits() {
        let (longest, _) = longest(&[2048, 4096], &[2048, 4096], 4096);
        assert_eq!((longest.fits, longest.next), (Some(1152), Some(1216)));
        assert!(longest.tried.len() <= 5, "{:?}", tokens(&longest));
    }

    #[test]
    fn lengths_that_were_asked_for_are_looked_at_though_they_are_no_multiples() {
        let (longest, _) = longest(&[], &[1190, 1300], 1300);
        assert_eq!((longest.fits, longest.next), (Some(1190), Some(1216)));
    }

    #[test]
    fn a_model_with_few_positions_has_its_most_as_the_only_candidate() {
        assert_eq!(candidates(&[8, 16], 32), [8, 16, 32]);
        assert_eq!(candidates(&[2048], 130), [64, 128, 130]);
    }

    #[test]
    fn long_contexts_are_looked_at_in_longer_steps() {
        let of = |most| candidates(&[], most);
        assert_eq!((of(8192)[0], of(8192).len()), (64, 128));
        assert_eq!((of(262_144)[0], of(262_144).len()), (2048, 128));
        assert_eq!(of(40_000)[..2], [512, 1024]);
        assert_eq!(of(u32::MAX).last(), Some(&u32::MAX));
    }

    #[test]
    fn an_early_end_keeps_what_was_known() {
        let mut prober = Affine::new(BUDGET, of_tokens);
        prober.stop_after = 0;
        let (longest, ended) = search(&[512, 1024], &[512, 1024], 4096, &mut prober);
        assert!(ended.is_err() && !longest.complete);
        assert_eq!((longest.fits, longest.next), (Some(1024), None));
    }

    proptest! {
        #[test]
        fn the_longest_that_fits_is_found_in_few_tries(
            asked in prop::collection::btree_set(1_u32..4000, 1..6), more in 0_u32..4000
        ) {
            let asked: Vec<u32> = asked.into_iter().collect();
            let most = asked.last().unwrap() + more;
            let (longest, ended) = longest(&asked, &asked, most);
            prop_assert!(ended.is_ok());
            let all = candidates(&asked, most);
            // 4000 and 5 a token, up to 10 000.
            prop_assert_eq!(longest.fits, all.iter().copied().filter(|it| *it <= 1200).max());
            prop_assert_eq!(longest.next, all.iter().copied().find(|it| *it > 1200));
            prop_assert!(longest.tried.len() <= 14, "{:?}", tokens(&longest));
        }
    }
}
