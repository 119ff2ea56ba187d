//! From measurements to an answer: which settings reach the target, and which of them is best.

mod ladder;
mod rank;
mod selection;
mod selective;

use std::collections::BTreeMap;

use crate::measurement::{Point, Verdict};
use crate::plan::{Choice, Next, Objective, Speed};
use crate::probe::{Findings, Searched};
use crate::profile::uncertainty::Uncertainty;
use crate::units::Bytes;
use crate::workload::Goal;

pub use ladder::{Compared, compared, ladder};
pub use rank::recomputation;
pub use selective::Selective;

/// What decides among settings, besides what was measured.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What the micro-batches add up to.
    pub goal: &'a Goal,
    /// What may be used.
    pub budget: Bytes,
    /// What the best setting is best at.
    pub objective: Objective,
    /// Tokens in a sample, where they are known.
    pub sequence: Option<u32>,
    /// What modelled times leave open.
    pub uncertainty: &'a Uncertainty,
    /// Whether the GPU computes faster in 16 bits; it matters where times are not known.
    pub mixed_pays: bool,
}

impl Question<'_> {
    /// The settings that reach the target within the budget, the best first. Each was run as it stands.
    /// Where speed is what counts, a setting whose largest micro-batch is not its best is there with both.
    pub fn choices(&self, findings: &Findings) -> Vec<Choice> {
        let of_setting = |searched: &Searched| -> Vec<Choice> {
            let Some(largest) = searched.largest else { return Vec::new() };
            let mut fitting = self.fitting(findings, searched);
            let is_largest = |choice: &Choice| choice.evidence == largest;
            match self.objective {
                Objective::Throughput if rank::are_timed(&fitting) => {
                    rank::sort(&mut fitting, self.objective, self.mixed_pays);
                    let mut index = 0;
                    fitting.retain(|choice| {
                        index += 1;
                        index == 1 || is_largest(choice)
                    });
                }
                Objective::Throughput | Objective::MicroBatch => fitting.retain(is_largest),
                Objective::Memory => {
                    rank::sort(&mut fitting, self.objective, self.mixed_pays);
                    fitting.truncate(1);
                }
            }
            fitting
        };
        let mut choices: Vec<_> = findings.searches.iter().flat_map(of_setting).collect();
        rank::sort(&mut choices, self.objective, self.mixed_pays);
        choices
    }

    /// What memory buys in speed, among all that was run and reaches the target within the budget.
    pub fn pareto(&self, findings: &Findings) -> Vec<Choice> {
        let of_setting = |searched| self.fitting(findings, searched);
        rank::pareto(findings.searches.iter().flat_map(of_setting).collect())
    }

    /// The largest micro-batch of a setting is not always its fastest: what to try next to find out for
    /// the best setting. Half and twice of its best micro-batch, as long as it gets better.
    pub fn next_size(&self, findings: &Findings) -> Option<Point> {
        let best = self.choices(findings).into_iter().next()?;
        best.speed.as_ref().filter(|_| self.objective == Objective::Throughput)?;
        let searched = findings.searches.iter().find(|it| it.setting == best.setting())?;
        let largest = findings.measurements[searched.largest?].point.micro_batch;
        let sizes = self.goal.micro_batches();
        let half = sizes.iter().rev().find(|size| **size <= best.micro_batch / 2);
        let twice = sizes.iter().find(|size| **size / 2 >= best.micro_batch);
        let kind = findings.measurements[best.evidence].evidence.kind;
        let is_known = |point: &Point| {
            findings.measurements.iter().any(|it| it.point == *point && it.evidence.kind == kind)
        };
        twice
            .filter(|size| **size < largest)
            .into_iter()
            .chain(half)
            .map(|size| Point::to_probe(best.setting(), *size, self.goal))
            .find(|point| !is_known(point))
    }

    /// The tries of a setting that fit; of the same kind of evidence as its largest, so that a real card's
    /// plan does not rest on its twin, and the last of each micro-batch.
    fn fitting(&self, findings: &Findings, searched: &Searched) -> Vec<Choice> {
        let Some(largest) = searched.largest else { return Vec::new() };
        let kind = findings.measurements[largest].evidence.kind;
        let mut last = BTreeMap::new();
        for (index, known) in findings.measurements.iter().enumerate() {
            let point = known.point;
            if point == Point::to_probe(searched.setting, point.micro_batch, self.goal)
                && known.evidence.kind == kind
            {
                last.insert(point.micro_batch, index);
            }
        }
        last.into_values()
            .filter(|index| findings.measurements[*index].verdict(self.budget) == Verdict::Fits)
            .filter_map(|index| self.choice(findings, searched, index))
            .collect()
    }

    fn choice(&self, findings: &Findings, searched: &Searched, evidence: usize) -> Option<Choice> {
        let measurement = &findings.measurements[evidence];
        let ran = measurement.ran()?;
        let micro_batch = measurement.point.micro_batch;
        let (accumulation, remainder) = self.goal.split(micro_batch);
        let next = searched.successor.filter(|_| searched.largest == Some(evidence));
        Some(Choice {
            micro_batch,
            accumulation,
            remainder,
            effective_batch: self.goal.target_batch,
            precision: searched.setting.precision,
            checkpointing: searched.setting.checkpointing,
            memory: ran.memory,
            speed: Speed::of(measurement, self.sequence, self.uncertainty),
            evidence,
            next: next.map(|index| Next {
                micro_batch: findings.measurements[index].point.micro_batch,
                tight: findings.measurements[index].verdict(self.budget) == Verdict::Tight,
                evidence: index,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measurement::{
        Evidence, EvidenceKind, Measurement, Memory, Outcome, Ran, Setting, StepTime,
    };
    use crate::workload::{Checkpointing, Precision};

    const GOAL: Goal = Goal { target_batch: 64, world_size: 1, ragged: false };

    fn findings(
        (kind, timed): (EvidenceKind, bool),
        rows: &[(Precision, Checkpointing, u32, u64, f64)],
    ) -> Findings {
        let mut findings = Findings::default();
        for (index, (precision, checkpointing, micro_batch, peak, seconds)) in
            rows.iter().enumerate()
        {
            let setting = Setting { precision: *precision, checkpointing: *checkpointing };
            findings.measurements.push(Measurement {
                point: Point::to_probe(setting, *micro_batch, &GOAL),
                sequence: None,
                outcome: Outcome::Ran(Ran {
                    memory: Memory { device_peak: Bytes(*peak), ..Memory::default() },
                    allocator_retries: 0,
                    step_seconds: *seconds,
                    step_time: timed.then(|| StepTime { total: *seconds, ..StepTime::default() }),
                }),
                evidence: Evidence::of(kind),
                probe_seconds: 0.0,
            });
            let largest = Some(index).filter(|_| *peak <= 1000);
            let searched = Searched { setting, largest, successor: None, complete: true };
            match findings.searches.iter_mut().find(|known| known.setting == setting) {
                Some(known) => known.largest = largest.or(known.largest),
                None => findings.searches.push(searched),
            }
        }
        findings
    }

    const REAL: (EvidenceKind, bool) = (EvidenceKind::Real, false);
    const MODELLED: (EvidenceKind, bool) = (EvidenceKind::Virtual, true);
    const UNTIMED: (EvidenceKind, bool) = (EvidenceKind::Virtual, false);

    fn ask<T>(objective: Objective, question: impl Fn(&Question<'_>) -> T) -> T {
        question(&Question {
            goal: &GOAL,
            budget: Bytes(1000),
            objective,
            sequence: None,
            uncertainty: &Uncertainty::uncalibrated(),
            mixed_pays: true,
        })
    }

    fn order(known: (EvidenceKind, bool), objective: Objective) -> Vec<(Precision, Checkpointing)> {
        use Checkpointing::{Full, None};
        use Precision::{Bf16, Fp16, Fp32};
        let findings = findings(
            known,
            &[
                (Fp32, None, 8, 900, 4.0),
                (Fp32, Full, 64, 950, 4.0),
                (Fp16, None, 16, 800, 2.0),
                (Bf16, None, 16, 820, 2.0),
                (Bf16, Full, 64, 700, 2.0),
            ],
        );
        let choices = ask(objective, |question| question.choices(&findings));
        assert!(choices.iter().all(|choice| choice.micro_batch * choice.accumulation == 64));
        choices.iter().map(|choice| (choice.precision, choice.checkpointing)).collect()
    }

    #[test]
    fn without_times_the_careful_persons_order_holds() {
        use Checkpointing::{Full, None};
        use Precision::{Bf16, Fp16, Fp32};
        assert_eq!(
            order(UNTIMED, Objective::Throughput),
            [(Bf16, None), (Fp16, None), (Fp32, None), (Bf16, Full), (Fp32, Full)]
        );
    }

    #[test]
    fn with_times_the_fastest_comes_first() {
        // All do 32 samples a second but fp32, which does 16: ties go to what computes nothing
        // twice, then to less numerical risk.
        use Checkpointing::{Full, None};
        use Precision::{Bf16, Fp16, Fp32};
        assert_eq!(
            order(REAL, Objective::Throughput),
            [(Bf16, None), (Fp16, None), (Bf16, Full), (Fp32, None), (Fp32, Full)]
        );
    }

    #[test]
    fn other_objectives_put_size_or_memory_first() {
        let by_size = order(UNTIMED, Objective::MicroBatch);
        assert_eq!(by_size[0], (Precision::Fp32, Checkpointing::Full));
        let by_memory = order(UNTIMED, Objective::Memory);
        assert_eq!(by_memory[0], (Precision::Bf16, Checkpointing::Full));
    }

    /// Of one setting: micro-batch, peak and seconds of a step of 64 samples, ascending.
    fn of_one(rows: &[(u32, u64, f64)]) -> Findings {
        let row = |&(size, peak, seconds): &(u32, u64, f64)| {
            (Precision::Fp32, Checkpointing::None, size, peak, seconds)
        };
        findings(MODELLED, &rows.iter().map(row).collect::<Vec<_>>())
    }

    fn sizes(choices: &[Choice]) -> Vec<u32> {
        choices.iter().map(|choice| choice.micro_batch).collect()
    }

    #[test]
    fn the_fastest_micro_batch_comes_first_and_the_largest_stays_in_sight() {
        let findings = of_one(&[(1, 100, 9.0), (16, 400, 2.0), (32, 700, 2.5), (64, 1400, 1.0)]);
        let choices = ask(Objective::Throughput, |question| question.choices(&findings));
        assert_eq!(sizes(&choices), [16, 32]);
        let choices = ask(Objective::MicroBatch, |question| question.choices(&findings));
        assert_eq!(sizes(&choices), [32]);
    }

    #[test]
    fn of_modelled_times_that_hardly_differ_fewer_steps_come_first() {
        let findings = of_one(&[(16, 400, 2.0), (32, 700, 2.08)]);
        let choices = ask(Objective::Throughput, |question| question.choices(&findings));
        assert_eq!(sizes(&choices), [32]);
    }

    #[test]
    fn other_micro_batches_are_tried_as_long_as_it_gets_better() {
        let next = |rows: &[(u32, u64, f64)]| {
            let findings = of_one(rows);
            let point = ask(Objective::Throughput, |question| question.next_size(&findings));
            point.map(|point| point.micro_batch)
        };
        assert_eq!(next(&[(1, 100, 9.0), (64, 900, 3.0)]), Some(32));
        assert_eq!(next(&[(1, 100, 9.0), (32, 500, 2.0), (64, 900, 3.0)]), Some(16));
        assert_eq!(next(&[(1, 100, 9.0), (32, 500, 3.0), (64, 900, 3.0)]), None);
        assert_eq!(next(&[(1, 100, 1.0), (2, 110, 1.2), (64, 900, 3.0)]), None);
        // Between a small one that is better and the largest.
        assert_eq!(next(&[(1, 100, 9.0), (2, 110, 2.0), (64, 900, 3.0)]), Some(4));
    }

    #[test]
    fn modelled_times_rank_as_measured_ones_do() {
        use Checkpointing::{Full, None};
        use Precision::{Bf16, Fp16, Fp32};
        assert_eq!(
            order(MODELLED, Objective::Throughput),
            [(Bf16, None), (Fp16, None), (Bf16, Full), (Fp32, None), (Fp32, Full)]
        );
    }

    /// Settings in several micro-batches with whatever peaks and times.
    fn anything() -> impl Strategy<Value = Findings> {
        let precision = prop::sample::select(&Precision::ALL[..]);
        let checkpointing = prop::sample::select(vec![
            Checkpointing::None,
            Checkpointing::Every(2),
            Checkpointing::Full,
        ]);
        let size = prop::sample::select(vec![1u32, 2, 4, 8, 16, 32, 64]);
        let row = (precision, checkpointing, size, 1u64..1300, 0.1..10.0f64);
        prop::collection::vec(row, 1..30).prop_map(|mut rows| {
            rows.sort_by_key(|row| (row.0, row.1, row.2));
            rows.dedup_by_key(|row| (row.0, row.1, row.2));
            findings(MODELLED, &rows)
        })
    }

    fn rate(choice: &Choice) -> f64 {
        choice.speed.as_ref().unwrap().samples_per_second.value
    }

    proptest! {
        #[test]
        fn nothing_that_fits_beats_the_recommended_by_more_than_a_tie(findings in anything()) {
            let choices = ask(Objective::Throughput, |question| question.choices(&findings));
            let fitting = findings.measurements.iter().filter(|it| it.verdict(Bytes(1000)) == Verdict::Fits);
            let fastest = fitting.map(|it| 64.0 / it.ran().unwrap().step_seconds).fold(0.0, f64::max);
            prop_assert_eq!(choices.is_empty(), fastest == 0.0);
            if let Some(best) = choices.first() {
                prop_assert!(rate(best) >= fastest * 0.95 * 0.95 - 1e-9, "{} {fastest}", rate(best));
            }
        }

        #[test]
        fn the_front_holds_what_nothing_else_dominates(findings in anything()) {
            let front = ask(Objective::Throughput, |question| question.pareto(&findings));
            let rises = |pair: &[Choice]| {
                pair[0].memory.device_peak < pair[1].memory.device_peak && rate(&pair[0]) < rate(&pair[1])
            };
            prop_assert!(front.windows(2).all(rises));
            for known in &findings.measurements {
                let ran = known.ran().unwrap();
                let (peak, speed) = (ran.memory.device_peak, 64.0 / ran.step_seconds);
                let matched = |it: &Choice| it.memory.device_peak <= peak && rate(it) >= speed * 0.95 - 1e-9;
                prop_assert!(peak > Bytes(1000) || front.iter().any(matched));
            }
        }
    }
}
