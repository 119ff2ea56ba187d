//! Several lengths of context: a campaign for each, and what they have to do with each other.

use std::cmp::Reverse;

use super::planner::Planner;
use super::progress::Progress;
use crate::device::Gpu;
use crate::error::{Error, ErrorKind};
use crate::measurement::{Measurement, Point, Setting, Verdict};
use crate::plan::{
    Answer, Choice, Context, Contexts, Limit, LimitOf, LongestContext, NextContext, Plan,
};
use crate::probe::{Campaign, Findings, Longest, Prober, Verified, verify};
use crate::units::Bytes;
use crate::workload::{Lengths, Workload};

/// The lengths to compare.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Ascending, at least one.
    within: Vec<u32>,
    /// Those that the model has no positions for.
    beyond: Vec<u32>,
    limit: Limit,
}

/// What was found at one length.
#[derive(Default)]
pub(super) struct OfLength {
    /// Tokens in one sample; none for what has no sequences, or decides for itself.
    pub(super) tokens: Option<u32>,
    pub(super) findings: Findings,
    /// How many of the measurements, the first, are of a real card's twin.
    pub(super) on_twin: usize,
    /// Why nothing could be measured.
    failure: Option<String>,
}

impl Asked {
    /// Where several lengths were asked for, and the workload can take the shortest.
    pub(super) fn new(lengths: Option<&Lengths>, workload: &Workload) -> Option<Self> {
        let lengths = lengths.filter(|lengths| lengths.are_several())?.as_slice();
        let model = workload.subject.built_in();
        let positions = model.and_then(|model| model.architecture.max_sequence());
        // A user's model may have any number, and on a virtual GPU nothing complains of too few.
        let limit = match positions {
            Some(tokens) => Limit { tokens, of: LimitOf::Positions },
            None => Limit { tokens: *lengths.last()?, of: LimitOf::Asked },
        };
        let (within, beyond) = lengths.iter().partition(|tokens| **tokens <= limit.tokens);
        Some(Self { within, beyond, limit })
    }

    /// Up to where the longest that fits is looked for. A user's code may refuse what was asked for.
    fn limit(&self, refused: impl Fn(u32) -> bool) -> Limit {
        let mut taken = self.within.iter().rev().copied().filter(|tokens| !refused(*tokens));
        let tokens = match self.limit.of {
            LimitOf::Positions => self.limit.tokens,
            LimitOf::Asked => taken.next().unwrap_or(self.limit.tokens),
        };
        Limit { tokens, ..self.limit }
    }
}

impl OfLength {
    /// Whether the search was stopped at this length.
    pub(super) fn ended_early(&self) -> bool {
        self.findings.interrupted || self.findings.stopped_by.is_some()
    }

    fn is_searched(&self) -> bool {
        let searches = &self.findings.searches;
        !searches.is_empty() && searches.iter().all(|searched| searched.complete)
    }

    fn fits(&self) -> bool {
        self.findings.searches.iter().any(|searched| searched.largest.is_some())
    }

    /// Takes in how a search ended that belongs to this length.
    pub(super) fn stopped_by(&mut self, error: &Error) {
        match error.kind() {
            ErrorKind::Interrupted => self.findings.interrupted = true,
            _ => self.findings.stopped_by = Some(error.to_string()),
        }
    }
}

/// Which of the lengths, the longest first, is recommended: the longest at which something fits, else
/// the last that was searched, which is the nearest to fitting.
pub(super) fn chosen(lengths: &[OfLength]) -> usize {
    let fits = lengths.iter().position(OfLength::fits);
    let searched = || lengths.iter().rposition(|of_length| of_length.failure.is_none());
    fits.or_else(searched).unwrap_or(0)
}

/// Takes the recommended length out of all. Wherever the search was stopped, the plan is incomplete.
pub(super) fn take_chosen(lengths: &mut Vec<OfLength>) -> OfLength {
    if lengths.is_empty() {
        return OfLength::default();
    }
    let mut taken = lengths.remove(chosen(lengths));
    for other in lengths.iter().map(|other| &other.findings) {
        taken.findings.interrupted |= other.interrupted;
        if taken.findings.stopped_by.is_none() {
            taken.findings.stopped_by.clone_from(&other.stopped_by);
        }
    }
    taken
}

impl Planner<'_> {
    /// The campaign at each length, the longest first: what an early end leaves is then of the length
    /// that is recommended if it fits. A length at which nothing can be measured is passed over where
    /// there are others.
    ///
    /// # Errors
    /// When nothing could be measured at any.
    pub(super) fn search_lengths(
        &self,
        gpu: &Gpu,
        prober: &mut dyn Prober,
        progress: &mut Progress,
    ) -> Result<Vec<OfLength>, Error> {
        let Some(asked) = &self.contexts else {
            let tokens = self.workload.sequence;
            let findings = self.search_at(tokens, gpu, prober, progress)?;
            return Ok(vec![OfLength { tokens, findings, ..OfLength::default() }]);
        };
        let mut lengths: Vec<OfLength> = Vec::new();
        let mut first_failure = None;
        for tokens in asked.within.iter().rev().copied() {
            progress.begin(format!("{tokens} tokens"), asked.within.len());
            let mut of_length = OfLength { tokens: Some(tokens), ..OfLength::default() };
            match self.search_at(Some(tokens), gpu, prober, progress) {
                Ok(findings) => of_length.findings = findings,
                Err(error) if concerns_one_length(&error) => {
                    of_length.failure = Some(reason(&error));
                    first_failure.get_or_insert(error);
                }
                Err(error) if lengths.iter().any(|it| it.failure.is_none()) => {
                    of_length.stopped_by(&error);
                }
                Err(error) => return Err(error),
            }
            let ended = of_length.ended_early();
            lengths.push(of_length);
            if ended {
                break;
            }
        }
        match first_failure {
            Some(error) if lengths.iter().all(|it| it.failure.is_some()) => Err(error),
            _ => Ok(lengths),
        }
    }

    fn search_at(
        &self,
        tokens: Option<u32>,
        gpu: &Gpu,
        prober: &mut dyn Prober,
        progress: &mut Progress,
    ) -> Result<Findings, Error> {
        let workload = self.at(tokens);
        let campaign = self.campaign(&workload, gpu);
        campaign.run(prober, &mut |findings| progress.update(findings))
    }

    /// What is trained, at another length.
    pub(super) fn at(&self, tokens: Option<u32>) -> Workload {
        Workload { sequence: tokens, ..self.workload.clone() }
    }

    fn campaign<'a>(&'a self, workload: &'a Workload, gpu: &Gpu) -> Campaign<'a> {
        Campaign {
            workload,
            goal: &self.goal,
            settings: &self.settings,
            budget: gpu.budget().budget,
        }
    }

    /// The longest contexts that fit one sample at a time: with the recommended setting and, where that
    /// does not reach the limit, with the one that is expected to go furthest. None where one length was asked for, or the search ended early.
    pub(super) fn search_longest(
        &self,
        gpu: &Gpu,
        prober: &mut dyn Prober,
        progress: &mut Progress,
        lengths: &mut [OfLength],
    ) -> Vec<Longest> {
        let Some(asked) = &self.contexts else { return Vec::new() };
        if lengths.iter().any(OfLength::ended_early) {
            return Vec::new();
        }
        progress.say("looking for the longest context that fits".to_owned());
        let most = asked.limit(|tokens| {
            lengths.iter().any(|it| it.tokens == Some(tokens) && it.failure.is_some())
        });
        let best = self.choices(&lengths[chosen(lengths)].findings).into_iter().next();
        let mut settings: Vec<Setting> = best.iter().map(Choice::setting).collect();
        let campaign = self.campaign(&self.workload, gpu);
        let furthest = self.furthest(lengths, most, campaign.budget);
        settings.extend(furthest.filter(|it| !settings.contains(it)));
        let mut found = Vec::new();
        for setting in settings {
            let mut longest = Longest::new(setting);
            let all = lengths.iter().flat_map(|it| &it.findings.measurements);
            let known: Vec<_> = all.collect();
            let range = (asked.within.as_slice(), most.tokens);
            let ended = longest.search(&campaign, range, &known, prober);
            let reaches_limit = longest.fits == Some(most.tokens);
            found.push(longest);
            if let (Err(error), Some(_)) = (&ended, &best) {
                let recommended = chosen(lengths);
                lengths[recommended].stopped_by(error);
            }
            if ended.is_err() || reaches_limit {
                break;
            }
        }
        found
    }

    /// The setting that is expected to go furthest: by the line through the two longest lengths at
    /// which one sample ran, of those that cross the budget at the same length the one that takes
    /// least. Where none ran at two, the last that is searched.
    fn furthest(&self, lengths: &[OfLength], most: Limit, budget: Bytes) -> Option<Setting> {
        let reach = |setting: &Setting| {
            let point = Point::to_probe(*setting, 1, &self.goal);
            // The longest first, as the lengths are.
            let mut ran = lengths.iter().filter_map(|of_length| {
                let known = of_length.findings.measurements.iter().find(|it| it.point == point)?;
                Some((of_length.tokens?, known.ran()?.memory.device_peak))
            });
            let ((long, high), (short, low)) = (ran.next()?, ran.next()?);
            let slope = high.saturating_sub(low).get() as f64 / f64::from(long - short);
            let left = budget.saturating_sub(high).get() as f64;
            let crosses = (f64::from(long) + left / slope).min(f64::from(most.tokens)) as u32;
            Some((Reverse(crosses), high))
        };
        let reaching = self.settings.iter().filter_map(|it| Some((reach(it)?, *it)));
        let furthest = reaching.min_by_key(|(reach, _)| *reach).map(|(_, setting)| setting);
        furthest.or(self.settings.last().copied())
    }

    /// Tries on the real card what its twin found at each length, and then the longest context. The
    /// worst of the factors by which the card differs from its twin.
    ///
    /// # Errors
    /// When nothing could be measured on the card.
    pub(super) fn verify_lengths(
        &self,
        prober: &mut dyn Prober,
        progress: &mut Progress,
        lengths: &mut [OfLength],
        longest: &mut [Longest],
    ) -> Result<f64, Error> {
        let mut worst: f64 = 1.0;
        for index in 0..lengths.len() {
            let (before, rest) = lengths.split_at_mut(index);
            let Some(of_length) = rest.first_mut().filter(|it| it.failure.is_none()) else {
                continue;
            };
            of_length.on_twin = of_length.findings.measurements.len();
            if let Some(ended) = before.iter().find(|it| it.ended_early()) {
                // What only the twin knows is no plan for the card.
                of_length.findings.searches.clear();
                of_length.findings.interrupted = ended.findings.interrupted;
                of_length.findings.stopped_by.clone_from(&ended.findings.stopped_by);
                continue;
            }
            let verified = verify(
                &mut of_length.findings,
                prober,
                &self.at(of_length.tokens),
                &self.goal,
                self.gpu.budget().budget,
                &mut |findings| progress.update(findings),
            );
            match verified {
                Ok(Verified { factor, .. }) if (factor - 1.0).abs() > (worst - 1.0).abs() => {
                    worst = factor;
                }
                Ok(_) => {}
                Err(error) if before.iter().any(|it| it.failure.is_none()) => {
                    of_length.findings.searches.clear();
                    of_length.stopped_by(&error);
                }
                Err(error) => return Err(error),
            }
        }
        for longest in longest {
            if lengths.iter().any(OfLength::ended_early) {
                break;
            }
            if let Err(error) = self.verify_longest(prober, lengths, longest) {
                lengths[chosen(lengths)].stopped_by(&error);
            }
        }
        Ok(worst)
    }

    /// Tries on the real card what its twin found to be the longest. Where the card disagrees, what
    /// is known to fit on it counts.
    ///
    /// # Errors
    /// As [`Prober::probe`].
    fn verify_longest(
        &self,
        prober: &mut dyn Prober,
        lengths: &[OfLength],
        longest: &mut Longest,
    ) -> Result<(), Error> {
        let budget = self.gpu.budget().budget;
        let point = Point::to_probe(longest.setting, 1, &self.goal);
        let fits =
            |known: &&Measurement| known.point == point && known.verdict(budget) == Verdict::Fits;
        let on_card = lengths.iter().flat_map(|it| &it.findings.measurements[it.on_twin..]);
        let known = on_card.filter(fits).filter_map(|known| known.sequence).max();
        let Some(twins) = longest.fits.filter(|twins| Some(*twins) > known) else {
            longest.fits = known;
            return Ok(());
        };
        let found = std::mem::replace(&mut longest.fits, known);
        let measurement = prober.probe(&self.at(Some(twins)), point)?;
        match measurement.verdict(budget) {
            Verdict::Fits => longest.fits = found,
            Verdict::TooLarge | Verdict::Tight => longest.next = found,
            Verdict::Unknown => {}
        }
        longest.tried.push(measurement);
        Ok(())
    }

    /// Adds the other lengths to a plan for the recommended one, with all that was measured for them.
    /// What the recommended one came to, should nothing fit at it, is `otherwise`.
    pub(super) fn add_contexts(
        &self,
        plan: &mut Plan,
        otherwise: &Answer,
        others: &[OfLength],
        longest: &[Longest],
    ) {
        let Some(asked) = &self.contexts else { return };
        let recommended = plan.workload.sequence;
        let mut lengths = Vec::new();
        for tokens in &asked.within {
            let other = others.iter().find(|other| other.tokens == Some(*tokens));
            let (choice, answer) = match other {
                Some(other) => {
                    let first = plan.measurements.len();
                    plan.measurements.extend(other.findings.measurements.iter().cloned());
                    let choice = self.choices(&other.findings).into_iter().next();
                    (choice.map(|it| it.with_evidence_after(first)), other.answer())
                }
                None if recommended == Some(*tokens) => {
                    (plan.recommendation.clone(), otherwise.clone())
                }
                None => (None, Answer::NotReached),
            };
            lengths.push(match choice {
                Some(choice) => Context::fitting(*tokens, choice),
                None => Context::without_choice(*tokens, answer),
            });
        }
        let beyond = asked.beyond.iter();
        lengths.extend(beyond.map(|it| Context::without_choice(*it, Answer::BeyondPositions)));
        plan.measurements.extend(longest.iter().flat_map(|it| it.tried.iter().cloned()));
        let longest = longest.iter().map(|it| self.longest_context(it, &plan.measurements));
        let limit = asked.limit(|tokens| {
            let refused = |it: &Context| matches!(it.answer, Answer::NotMeasured { .. });
            lengths.iter().any(|it| it.tokens == tokens && refused(it))
        });
        plan.contexts = Some(Contexts { lengths, longest: longest.collect(), limit });
    }

    fn longest_context(&self, longest: &Longest, measurements: &[Measurement]) -> LongestContext {
        let Setting { precision, checkpointing } = longest.setting;
        let point = Point::to_probe(longest.setting, 1, &self.goal);
        // The last: what the card was asked for, its twin was asked for before.
        let evidence = |tokens: u32| {
            let is_it =
                |known: &Measurement| known.point == point && known.sequence == Some(tokens);
            measurements.iter().rposition(is_it)
        };
        LongestContext {
            precision,
            checkpointing,
            tokens: longest.fits,
            evidence: longest.fits.and_then(evidence),
            next: longest
                .next
                .and_then(|tokens| Some(NextContext { tokens, evidence: evidence(tokens)? })),
        }
    }
}

impl OfLength {
    /// Of a length at which nothing is known to fit.
    pub(super) fn answer(&self) -> Answer {
        match &self.failure {
            Some(reason) => Answer::NotMeasured { reason: reason.clone() },
            None if self.is_searched() => Answer::DoesNotFit,
            None => Answer::NotReached,
        }
    }
}

/// Whether another length may still be tried: this one cannot be measured, or the user's code does not
/// take it.
fn concerns_one_length(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NothingMeasured { .. }) || error.is_of_users_code()
}

fn reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NothingMeasured { reason } => reason.clone(),
        _ => error.to_string(),
    }
}
