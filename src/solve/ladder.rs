use super::Question;
use super::rank::recomputation;
use crate::measurement::{Measurement, Outcome, Point, Setting};
use crate::plan::{Rung, Speed, Step};
use crate::probe::Findings;
use crate::workload::{Checkpointing, Goal, Precision};

/// A rung of the ladder and the point that tells what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The means of saving memory.
    pub step: Step,
    /// What is to be measured, at the same micro-batch on each rung.
    pub point: Point,
    /// Whether several micro-batches make up a step.
    pub accumulates: bool,
}

/// The rungs that the searched settings allow, to be measured before [`ladder`] is called. They are
/// compared at the plain setting's largest micro-batch, or where it has none, at the smallest.
pub fn compared(findings: &Findings, settings: &[Setting], goal: &Goal) -> Vec<Compared> {
    let unchecked = |setting: &&Setting| !setting.checkpointing.is_on();
    let plain = settings.iter().filter(unchecked).min_by_key(|setting| setting.precision);
    let mixed = settings
        .iter()
        .filter(unchecked)
        .filter(|setting| setting.precision.is_mixed())
        .min_by_key(|setting| setting.precision);
    let Some(plain) = plain.or(settings.first()).copied() else { return Vec::new() };
    let precision = mixed.unwrap_or(&plain).precision;
    let checkpointed = settings
        .iter()
        .filter(|setting| setting.precision == precision && !unchecked(setting))
        .max_by_key(|setting| recomputation(setting.checkpointing));

    let last = mixed.copied().unwrap_or(plain);
    // The fewest blocks that buy something.
    let in_part = findings
        .searches
        .iter()
        .map(|searched| searched.setting)
        .filter(|it| it.precision == precision && Some(it) != checkpointed)
        .filter(|it| matches!(it.checkpointing, Checkpointing::Blocks(_)))
        .filter(|it| largest(findings, *it) > largest(findings, last))
        .min_by_key(|it| recomputation(it.checkpointing));

    let micro_batch = largest(findings, plain).unwrap_or(1);
    let once = |setting| Point { setting, micro_batch, accumulation: 1, remainder: None };
    let (repeats, rest) = goal.split(micro_batch);
    let accumulates = repeats > 1 || rest.is_some();
    let repeated = |setting| Point::to_probe(setting, micro_batch, goal);

    let mut rungs = vec![Compared { step: Step::Plain, point: once(plain), accumulates: false }];
    if matches!(plain.precision, Precision::Fp32 | Precision::Tf32) {
        rungs.extend(mixed.map(|mixed| Compared {
            step: Step::MixedPrecision,
            point: once(*mixed),
            accumulates: false,
        }));
    }
    if accumulates {
        rungs.push(Compared { step: Step::Accumulation, point: repeated(last), accumulates });
    }
    rungs.extend(in_part.map(|in_part| Compared {
        step: Step::SelectiveCheckpointing,
        point: repeated(in_part),
        accumulates,
    }));
    rungs.extend(checkpointed.map(|checkpointed| Compared {
        step: Step::Checkpointing,
        point: repeated(*checkpointed),
        accumulates,
    }));
    rungs
}

/// What each rung takes and allows, from what was measured. Rungs that were not, or failed for
/// themselves, are left out.
pub fn ladder(findings: &Findings, rungs: &[Compared], question: &Question<'_>) -> Vec<Rung> {
    let rung = |compared: &Compared| {
        let Compared { step, point, accumulates } = *compared;
        let is_known = |known: &Measurement| {
            known.point == point && !matches!(known.outcome, Outcome::Failed { .. })
        };
        let evidence = findings.measurements.iter().position(is_known)?;
        let measurement = &findings.measurements[evidence];
        let largest = largest(findings, point.setting);
        let whole = question.goal.per_gpu();
        Some(Rung {
            step,
            precision: point.setting.precision,
            checkpointing: point.setting.checkpointing,
            accumulates,
            micro_batch: point.micro_batch,
            device_peak: measurement.ran().map(|ran| ran.memory.device_peak),
            speed: Speed::of(measurement, question.sequence, question.uncertainty),
            largest_micro_batch: largest,
            reaches_target: largest.is_some_and(|size| accumulates || size == whole),
            evidence: Some(evidence),
        })
    };
    rungs.iter().filter_map(rung).collect()
}

fn largest(findings: &Findings, setting: Setting) -> Option<u32> {
    Some(findings.measurements[findings.searched(setting)?.largest?].point.micro_batch)
}
