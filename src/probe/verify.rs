//! From the virtual twin to the real card: the search is done where an out-of-memory costs nothing,
//! and what it found is tried once where it counts.

use super::campaign::seen;
use super::search::{Search, Seen};
use super::{Findings, Prober, Searched};
use crate::error::{Error, ErrorKind};
use crate::measurement::{Measurement, Outcome, Point, Setting, Verdict};
use crate::units::Bytes;
use crate::workload::{Goal, Workload};

/// What trying on the card told of the twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verified {
    /// Measured over predicted device peak; 1 is a perfect twin.
    pub factor: f64,
    /// Predictions that were compared.
    pub compared: usize,
}

impl Verified {
    fn compare(&mut self, predicted: Bytes, measured: Bytes) {
        if predicted > Bytes::ZERO {
            // The worst so far counts: an underestimate costs a failed try, an overestimate little.
            let factor = measured.get() as f64 / predicted.get() as f64;
            self.factor = match self.compared {
                0 => factor,
                _ => self.factor.max(factor),
            };
            self.compared += 1;
        }
    }
}

/// Tries what the twin found on the card itself, smallest first so that the first real try cannot
/// run out of memory. Measurements are added to `findings`; each of its searches then points at a
/// real try, its successor at a real one or, where that was not tried, at the twin's.
///
/// # Errors
/// As [`Prober::probe`] while nothing ran on the card, and when every try on it failed for itself.
/// Once something ran, an error ends the tries early, as the user's wish to stop does, and `findings`
/// say so.
pub fn verify(
    findings: &mut Findings,
    prober: &mut dyn Prober,
    workload: &Workload,
    goal: &Goal,
    budget: Bytes,
    progress: &mut dyn FnMut(&Findings),
) -> Result<Verified, Error> {
    let twin = std::mem::take(&mut findings.searches);
    let predicted = findings.measurements.clone();
    let mut verified = Verified { factor: 1.0, compared: 0 };
    let card = Card { predicted: &predicted, goal, budget, workload };
    for searched in twin {
        match card.verify(searched, findings, prober, &mut verified) {
            Ok(found) => findings.searches.push(found),
            Err(error) => {
                let tries = &findings.measurements[predicted.len()..];
                if matches!(error.kind(), ErrorKind::Interrupted) {
                    findings.interrupted = true;
                } else if tries.iter().any(|known| known.ran().is_some()) {
                    findings.stopped_by = Some(error.to_string());
                } else {
                    return Err(error);
                }
                let largest = card.largest_on_card(searched.setting, findings);
                let early = Searched { largest, successor: None, complete: false, ..searched };
                findings.searches.push(early);
                break;
            }
        }
        progress(findings);
    }
    match card.only_failure(findings) {
        Some(reason) => Err(ErrorKind::NothingMeasured { reason }.into()),
        None => Ok(verified),
    }
}

struct Card<'a> {
    /// What the twin measured.
    predicted: &'a [Measurement],
    goal: &'a Goal,
    budget: Bytes,
    workload: &'a Workload,
}

impl Card<'_> {
    /// Tries the twin's largest on the card; where the card disagrees, searches on the card among
    /// what the corrected twin leaves.
    fn verify(
        &self,
        searched: Searched,
        findings: &mut Findings,
        prober: &mut dyn Prober,
        verified: &mut Verified,
    ) -> Result<Searched, Error> {
        let setting = searched.setting;
        let Some(twins) = searched.largest.map(|index| self.predicted[index].point) else {
            return Ok(searched);
        };
        let sizes = self.goal.micro_batches();
        if verified.compared == 0 {
            self.probe(Point::to_probe(setting, sizes[0], self.goal), findings, prober, verified)?;
        }
        if !self.predicts_too_large(&self.predicted[searched.largest.unwrap_or(0)], verified) {
            let index = self.probe(twins, findings, prober, verified)?;
            if findings.measurements[index].verdict(self.budget) == Verdict::Fits {
                return Ok(Searched { largest: Some(index), ..searched });
            }
        }
        let mut search = Search::new(&sizes, self.budget);
        loop {
            // Anew each time: what the twin is believed to say changes with each comparison.
            for known in findings.measurements.iter().enumerate() {
                let (index, known) = known;
                let point = known.point;
                let of_search = point.setting == setting
                    && point == Point::to_probe(setting, point.micro_batch, self.goal);
                let twins_no = index < self.predicted.len()
                    && self.predicts_too_large(known, verified)
                    && self.on_card(point, findings).is_none();
                if of_search && twins_no {
                    let seen = Seen { verdict: Verdict::TooLarge, peaks: None };
                    search.take_in(point.micro_batch, seen);
                } else if of_search && index >= self.predicted.len() {
                    search.take_in(point.micro_batch, seen(known, self.budget));
                }
            }
            let Some(size) = search.next() else { break };
            self.probe(Point::to_probe(setting, size, self.goal), findings, prober, verified)?;
        }
        let find = |size: Option<u32>| {
            let point = Point::to_probe(setting, size?, self.goal);
            let predicted = || self.predicted.iter().position(|known| known.point == point);
            self.on_card(point, findings).or_else(predicted)
        };
        let (largest, successor) = (find(search.largest()), find(search.successor()));
        Ok(Searched { largest, successor, ..searched })
    }

    /// Tries a point on the card unless that was done, and compares with the twin's word.
    fn probe(
        &self,
        point: Point,
        findings: &mut Findings,
        prober: &mut dyn Prober,
        verified: &mut Verified,
    ) -> Result<usize, Error> {
        if let Some(index) = self.on_card(point, findings) {
            return Ok(index);
        }
        let measurement = prober.probe(self.workload, point)?;
        let twins = self.predicted.iter().find(|known| known.point == point);
        if let (Some(measured), Some(predicted)) =
            (measurement.ran(), twins.and_then(Measurement::ran))
        {
            verified.compare(predicted.memory.device_peak, measured.memory.device_peak);
        }
        findings.measurements.push(measurement);
        Ok(findings.measurements.len() - 1)
    }

    /// The largest micro-batch of a setting that was tried on the card and fits.
    fn largest_on_card(&self, setting: Setting, findings: &Findings) -> Option<usize> {
        let tries = findings.measurements.iter().enumerate().skip(self.predicted.len());
        tries
            .filter(|(_, known)| {
                let point = known.point;
                point == Point::to_probe(setting, point.micro_batch, self.goal)
                    && known.verdict(self.budget) == Verdict::Fits
            })
            .max_by_key(|(_, known)| known.point.micro_batch)
            .map(|(index, _)| index)
    }

    /// Why the last try on the card failed, when all of them failed for themselves: then nothing is
    /// known of the card, whatever the twin says.
    fn only_failure(&self, findings: &Findings) -> Option<String> {
        let tries = &findings.measurements[self.predicted.len()..];
        let failure = |known: &Measurement| match &known.outcome {
            Outcome::Failed { message, .. } => Some(message.clone()),
            Outcome::Ran(_) | Outcome::OutOfMemory { .. } => None,
        };
        let failures: Option<Vec<_>> = tries.iter().map(failure).collect();
        failures?.pop()
    }

    /// The index of a point's try on the card.
    fn on_card(&self, point: Point, findings: &Findings) -> Option<usize> {
        let first = self.predicted.len();
        let tries = &findings.measurements[first..];
        tries.iter().position(|known| known.point == point).map(|index| first + index)
    }

    /// Whether the twin's word, corrected, is that the card cannot.
    fn predicts_too_large(&self, predicted: &Measurement, verified: &Verified) -> bool {
        match predicted.ran() {
            Some(ran) => {
                let peak = ran.memory.device_peak.get() as f64 * verified.factor;
                peak > self.budget.get() as f64 || ran.allocator_retries > 0
            }
            None => predicted.verdict(self.budget) == Verdict::TooLarge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Campaign;
    use super::super::campaign::tests::{Affine, measured, setting, workload};
    use super::*;
    use crate::workload::{Checkpointing, Precision};

    const GOAL: Goal = Goal { target_batch: 64, world_size: 1, ragged: false };
    const BUDGET: Bytes = Bytes(2000);

    fn twin() -> (Workload, Findings) {
        let workload = workload();
        let settings = [setting(Precision::Fp32, Checkpointing::None)];
        let campaign =
            Campaign { workload: &workload, goal: &GOAL, settings: &settings, budget: BUDGET };
        let mut prober = Affine::new(BUDGET, |_, _| (1000, 60));
        let findings = campaign.run(&mut prober, &mut |_| {}).unwrap();
        (workload, findings)
    }

    fn chosen(findings: &Findings) -> u32 {
        findings.measurements[findings.searches[0].largest.unwrap()].point.micro_batch
    }

    #[test]
    fn a_true_twin_takes_two_real_tries() {
        let (workload, mut findings) = twin();
        let mut card = Affine::new(BUDGET, |_, _| (1000, 60));
        let verified =
            verify(&mut findings, &mut card, &workload, &GOAL, BUDGET, &mut |_| {}).unwrap();
        assert_eq!((card.probes, chosen(&findings)), (2, 16));
        assert_eq!(verified, Verified { factor: 1.0, compared: 2 });
    }

    #[test]
    fn a_card_on_which_every_try_fails_is_not_said_to_be_too_small() {
        struct Broken;
        impl Prober for Broken {
            fn probe(&mut self, _: &Workload, point: Point) -> Result<Measurement, Error> {
                Ok(measured(point, Outcome::failed("it crashed")))
            }
        }
        let (workload, mut findings) = twin();
        let error = verify(&mut findings, &mut Broken, &workload, &GOAL, BUDGET, &mut |_| {});
        assert_eq!(error.unwrap_err().to_string(), "nothing could be measured: it crashed");
    }

    #[test]
    fn an_early_end_keeps_what_fits_on_the_card() {
        let (workload, mut findings) = twin();
        let mut card = Affine::new(BUDGET, |_, _| (1000, 60));
        card.stop_after = 1;
        verify(&mut findings, &mut card, &workload, &GOAL, BUDGET, &mut |_| {}).unwrap();
        assert!(findings.interrupted && !findings.searches[0].complete);
        assert_eq!(chosen(&findings), 1);
    }

    #[test]
    fn a_card_that_needs_more_than_its_twin_gets_a_smaller_micro_batch() {
        let (workload, mut findings) = twin();
        let predicted = findings.measurements.len();
        // 16 samples: 1960 on the twin, 2058 on the card.
        let mut card = Affine::new(BUDGET, |_, _| (1050, 63));
        let verified =
            verify(&mut findings, &mut card, &workload, &GOAL, BUDGET, &mut |_| {}).unwrap();
        // Whatever the twin ran on its way, the search on the card finds its own largest.
        assert_eq!(chosen(&findings), 8);
        let successor = findings.searches[0].successor.unwrap();
        assert_eq!(findings.measurements[successor].point.micro_batch, 16);
        assert!((verified.factor - 1.05).abs() < 1e-9);
        // No out-of-memory on the card: what the corrected twin excludes is not tried there.
        let on_card = &findings.measurements[predicted..];
        assert!(on_card.iter().all(|known| known.ran().is_some()), "{on_card:?}");
    }
}
