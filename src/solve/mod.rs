//! From measurements to an answer: which settings reach the target, and which of them is best.

mod ladder;
mod rank;
mod selection;
mod selective;

use crate::measurement::{EvidenceKind, Point, Verdict};
use crate::plan::{Choice, Next, Objective};
use crate::probe::{Findings, Searched};
use crate::units::Bytes;
use crate::workload::Goal;

pub use ladder::{Compared, compared, ladder};
pub use rank::recomputation;
pub use selective::Selective;

/// The settings that reach the target within the budget, the best first. Each was run as it stands.
/// `mixed_pays` tells whether the GPU computes faster in 16 bits; it matters where times are not known.
pub fn choices(
    findings: &Findings,
    goal: &Goal,
    budget: Bytes,
    objective: Objective,
    mixed_pays: bool,
) -> Vec<Choice> {
    let mut choices: Vec<Choice> = match objective {
        Objective::Throughput | Objective::MicroBatch => findings
            .searches
            .iter()
            .filter_map(|searched| choice(findings, searched, searched.largest?, goal, budget))
            .collect(),
        Objective::Memory => findings
            .searches
            .iter()
            .filter_map(|searched| {
                let least = smallest_fitting(findings, searched, goal, budget)?;
                choice(findings, searched, least, goal, budget)
            })
            .collect(),
    };
    rank::sort(&mut choices, objective, mixed_pays);
    choices
}

fn choice(
    findings: &Findings,
    searched: &Searched,
    evidence: usize,
    goal: &Goal,
    budget: Bytes,
) -> Option<Choice> {
    let measurement = &findings.measurements[evidence];
    let ran = measurement.ran()?;
    let micro_batch = measurement.point.micro_batch;
    let (accumulation, remainder) = goal.split(micro_batch);
    let next = searched.successor.filter(|_| searched.largest == Some(evidence));
    Some(Choice {
        micro_batch,
        accumulation,
        remainder,
        effective_batch: goal.target_batch,
        precision: searched.setting.precision,
        checkpointing: searched.setting.checkpointing,
        memory: ran.memory,
        samples_per_second: match measurement.evidence.kind {
            EvidenceKind::Real if ran.step_seconds > 0.0 => {
                Some(f64::from(measurement.point.samples()) / ran.step_seconds)
            }
            EvidenceKind::Real | EvidenceKind::Virtual => None,
        },
        evidence,
        next: next.map(|index| Next {
            micro_batch: findings.measurements[index].point.micro_batch,
            tight: findings.measurements[index].verdict(budget) == Verdict::Tight,
            evidence: index,
        }),
    })
}

/// Of the tries of a setting that fit, the one that takes the least; of the same kind of evidence as
/// the setting's largest, so that a real card's plan does not rest on its twin.
fn smallest_fitting(
    findings: &Findings,
    searched: &Searched,
    goal: &Goal,
    budget: Bytes,
) -> Option<usize> {
    let kind = findings.measurements[searched.largest?].evidence.kind;
    let fitting = findings.measurements.iter().enumerate().filter(|(_, known)| {
        let point = known.point;
        point.setting == searched.setting
            && point == Point::to_probe(point.setting, point.micro_batch, goal)
            && known.evidence.kind == kind
            && known.verdict(budget) == Verdict::Fits
    });
    fitting
        .filter_map(|(index, known)| Some((known.ran()?.memory.device_peak, index)))
        .min()
        .map(|(_, index)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Evidence, Measurement, Memory, Outcome, Ran, Setting};
    use crate::workload::{Checkpointing, Precision};

    const GOAL: Goal = Goal { target_batch: 64, world_size: 1, ragged: false };

    fn findings(
        kind: EvidenceKind,
        rows: &[(Precision, Checkpointing, u32, u64, f64)],
    ) -> Findings {
        let mut findings = Findings::default();
        for (index, (precision, checkpointing, micro_batch, peak, seconds)) in
            rows.iter().enumerate()
        {
            let setting = Setting { precision: *precision, checkpointing: *checkpointing };
            findings.measurements.push(Measurement {
                point: Point::to_probe(setting, *micro_batch, &GOAL),
                outcome: Outcome::Ran(Ran {
                    memory: Memory { device_peak: Bytes(*peak), ..Memory::default() },
                    allocator_retries: 0,
                    step_seconds: *seconds,
                    step_time: None,
                }),
                evidence: Evidence {
                    kind,
                    gpu: String::new(),
                    driver: String::new(),
                    torch: String::new(),
                    cuda: String::new(),
                    cudnn: String::new(),
                },
                probe_seconds: 0.0,
            });
            findings.searches.push(Searched {
                setting,
                largest: Some(index),
                successor: None,
                complete: true,
            });
        }
        findings
    }

    fn order(kind: EvidenceKind, objective: Objective) -> Vec<(Precision, Checkpointing)> {
        use Checkpointing::{Full, None};
        use Precision::{Bf16, Fp16, Fp32};
        let findings = findings(
            kind,
            &[
                (Fp32, None, 8, 900, 4.0),
                (Fp32, Full, 64, 950, 4.0),
                (Fp16, None, 16, 800, 2.0),
                (Bf16, None, 16, 820, 2.0),
                (Bf16, Full, 64, 700, 2.0),
            ],
        );
        let choices = choices(&findings, &GOAL, Bytes(1000), objective, true);
        assert!(choices.iter().all(|choice| choice.micro_batch * choice.accumulation == 64));
        choices.iter().map(|choice| (choice.precision, choice.checkpointing)).collect()
    }

    #[test]
    fn without_times_the_careful_persons_order_holds() {
        use Checkpointing::{Full, None};
        use Precision::{Bf16, Fp16, Fp32};
        assert_eq!(
            order(EvidenceKind::Virtual, Objective::Throughput),
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
            order(EvidenceKind::Real, Objective::Throughput),
            [(Bf16, None), (Fp16, None), (Bf16, Full), (Fp32, None), (Fp32, Full)]
        );
    }

    #[test]
    fn other_objectives_put_size_or_memory_first() {
        let by_size = order(EvidenceKind::Virtual, Objective::MicroBatch);
        assert_eq!(by_size[0], (Precision::Fp32, Checkpointing::Full));
        let by_memory = order(EvidenceKind::Virtual, Objective::Memory);
        assert_eq!(by_memory[0], (Precision::Bf16, Checkpointing::Full));
    }
}
