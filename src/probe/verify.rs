//! From the virtual twin to the real card: the search is done where an out-of-memory costs nothing,
//! and what it found is tried once where it counts.

use super::{Findings, Prober, Searched};
use crate::error::{Error, ErrorKind};
use crate::measurement::{Measurement, Point, Setting, Verdict};
use crate::units::Bytes;
use crate::workload::{Goal, Workload};

/// Real tries for one setting: the first is nearly always right.
const TRIES: usize = 4;

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
/// real try, its successor still at the twin's.
///
/// # Errors
/// As [`Prober::probe`]; an interruption is noted in `findings`.
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
    let mut card = Card { predicted: &predicted, goal, budget, workload };
    for searched in twin {
        let largest = card.verify(searched, findings, prober, &mut verified);
        let largest = match largest {
            Ok(largest) => largest,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted) => {
                findings.interrupted = true;
                break;
            }
            Err(error) => return Err(error),
        };
        findings.searches.push(Searched { largest, ..searched });
        progress(findings);
    }
    Ok(verified)
}

struct Card<'a> {
    /// What the twin measured.
    predicted: &'a [Measurement],
    goal: &'a Goal,
    budget: Bytes,
    workload: &'a Workload,
}

impl Card<'_> {
    fn verify(
        &mut self,
        searched: Searched,
        findings: &mut Findings,
        prober: &mut dyn Prober,
        verified: &mut Verified,
    ) -> Result<Option<usize>, Error> {
        let sizes = self.fitting(searched.setting);
        let mut best: Option<usize> = None;
        let mut limit = usize::MAX;
        let first_of_all = verified.compared == 0;
        for attempt in 0..TRIES {
            let scaled = |bytes: Bytes| Bytes((bytes.get() as f64 * verified.factor) as u64);
            let wanted = match (first_of_all && attempt == 0, best) {
                (true, _) => sizes.first().map(|_| 0),
                (false, _) => (0..sizes.len().min(limit))
                    .rev()
                    .find(|index| scaled(sizes[*index].1) <= self.budget),
            };
            let Some(wanted) = wanted else { break };
            let point = Point::to_probe(searched.setting, sizes[wanted].0, self.goal);
            let tried = findings.measurements[self.predicted.len()..]
                .iter()
                .any(|known| known.point == point);
            if tried {
                break;
            }
            let measurement = prober.probe(self.workload, point)?;
            if let Some(ran) = measurement.ran() {
                verified.compare(sizes[wanted].1, ran.memory.device_peak);
            }
            let verdict = measurement.verdict(self.budget);
            findings.measurements.push(measurement);
            match verdict {
                Verdict::Fits => best = Some(findings.measurements.len() - 1),
                Verdict::Tight | Verdict::TooLarge | Verdict::Unknown => limit = wanted,
            }
        }
        Ok(best)
    }

    /// Micro-batches that the twin ran within the budget, with their device peaks, ascending.
    fn fitting(&self, setting: Setting) -> Vec<(u32, Bytes)> {
        let of_setting = self.predicted.iter().filter(|known| {
            let point = known.point;
            point.setting == setting
                && point == Point::to_probe(setting, point.micro_batch, self.goal)
                && known.verdict(self.budget) == Verdict::Fits
        });
        let mut sizes: Vec<_> = of_setting
            .filter_map(|known| Some((known.point.micro_batch, known.ran()?.memory.device_peak)))
            .collect();
        sizes.sort_unstable();
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::super::Campaign;
    use super::super::campaign::tests::{Affine, setting, workload};
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
    fn a_card_that_needs_more_than_its_twin_gets_a_smaller_micro_batch() {
        let (workload, mut findings) = twin();
        // 16 samples: 1960 on the twin, 2058 on the card.
        let mut card = Affine::new(BUDGET, |_, _| (1050, 63));
        let verified =
            verify(&mut findings, &mut card, &workload, &GOAL, BUDGET, &mut |_| {}).unwrap();
        assert!(chosen(&findings) < 16, "{findings:?}");
        assert!((verified.factor - 1.05).abs() < 1e-9);
        assert!(findings.measurements.iter().all(|known| known.point.micro_batch != 16
            || known.ran().is_none_or(|ran| ran.memory.device_peak <= BUDGET)));
    }
}
