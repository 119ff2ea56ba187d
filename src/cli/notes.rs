//! What one should know of a plan before one relies on it.

use crate::device::{Budget, Gpu, Platform, RunReports, Setup, VirtualGpu};
use crate::error::one_line;
use crate::measurement::{Outcome, Setting, Verdict};
use crate::plan::{Choice, Note, Objective, Plan, SpeedBasis, Tried};
use crate::probe::{Findings, GpuProber};
use crate::profile::context::Range;
use crate::profile::gpu::Segment;
use crate::units::Bytes;
use crate::workload::{Checkpointing, Precision, Subject, Variable};

/// Of a plan: what was left out of it, and what its recommendation means. `on_twin` of the findings,
/// the first, are of a real card's twin.
pub(super) fn of_plan(plan: &Plan, findings: &Findings, on_twin: usize) -> Vec<Note> {
    let mut notes = Vec::new();
    if findings.interrupted {
        notes.push(Note::Incomplete);
    }
    if let Some(reason) = &findings.stopped_by {
        notes.push(Note::StoppedBy { reason: reason.clone() });
    }
    let Some(choice) = &plan.recommendation else {
        notes.extend(of_points(findings, plan));
        return notes;
    };
    if plan.objective == Objective::Throughput && choice.speed.is_none() {
        notes.push(Note::RankedWithoutTimes);
    }
    let micro_batch = choice.micro_batch;
    let built_so = plan.built.as_ref().is_some_and(|built| built.batch_norm);
    if (built_so || plan.workload.subject.has_batch_norm()) && micro_batch < plan.goal.per_gpu() {
        notes.push(Note::BatchNorm { micro_batch });
    }
    notes.extend(of_command(&plan.workload.subject, choice));
    if plan.goal.world_size > plan.workload.subject.ranks() {
        notes.push(Note::WorldSize { world_size: plan.goal.world_size });
    }
    let points = next_on_twin(plan, on_twin);
    if !points.is_empty() {
        notes.push(Note::NextOnTwin { points });
    }
    notes.extend(of_points(findings, plan));
    notes
}

/// Of a virtual GPU and of what ran on it.
pub(super) fn of_virtual_gpu(gpu: &VirtualGpu, seen: RunReports) -> Vec<Note> {
    let context = &gpu.profile().context;
    let Range { low, high } = gpu.profile().context_range();
    let mut notes = vec![Note::ContextOfProfile {
        context: context.value,
        basis: context.basis.name().to_owned(),
        source: context.source.clone(),
        low,
        high,
    }];
    if !seen.not_implemented.is_empty() {
        notes.push(Note::NotImplemented { names: seen.not_implemented });
    }
    if seen.read_backs > 0 {
        let places = seen.unknown_reads.iter().map(|it| one_line(&it.to_string())).collect();
        notes.push(Note::ReadBacks { count: seen.read_backs, places });
    }
    notes.extend(seen.internal_errors.into_iter().map(|message| Note::InternalError { message }));
    notes
}

/// Of precisions that the card has not, or not in the hardware that makes them pay.
pub(super) fn of_precisions(left_out: &[Precision], tried: &[Setting], gpu: &Gpu) -> Vec<Note> {
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(Note::PrecisionsLeftOut {
            precisions: left_out.to_vec(),
            compute_capability: gpu.compute_capability().to_string(),
        });
    }
    if !gpu.has_tensor_cores() && tried.iter().any(|setting| setting.precision.is_mixed()) {
        notes.push(Note::NoTensorCores { gtx_16: gpu.product().contains("GTX 16") });
    }
    notes
}

/// Of what modelled speeds of a card leave open.
pub(super) fn of_speed(plan: &Plan, gpu: &Gpu) -> Option<Note> {
    let speed = plan.recommendation.as_ref()?.speed.as_ref()?;
    let Gpu::Virtual(gpu) = gpu else { return None };
    let profile = gpu.profile();
    let varies = speed.basis == SpeedBasis::Modelled && profile.segment == Segment::Laptop;
    varies.then(|| Note::LaptopPower {
        clock: profile.boost_clock.value,
        lowest_clock: profile.lowest_boost_clock.as_ref().map(|clock| clock.value),
        power: profile.power.value,
        lowest_power: profile.lowest_power.as_ref().map(|power| power.value),
    })
}

/// Of the operating system that a plan is for.
pub(super) fn of_platform(platform: Platform, setup: Setup, budget: Budget) -> Vec<Note> {
    if !platform.is_windows() {
        return Vec::new();
    }
    let mut notes = vec![Note::Spills];
    // Of a real card NVML has counted what the desktop holds.
    if setup.reserve.is_none() && budget.reserve > Bytes::ZERO {
        notes.push(Note::WindowsDesktop { reserve: budget.reserve });
    }
    notes
}

/// Of what a prober could not tell apart on its GPU.
pub(super) fn of_prober(prober: &dyn GpuProber, budget: Budget) -> Vec<Note> {
    let mut notes = Vec::new();
    if prober.was_unnamed() {
        notes.push(Note::ProcessUnnamed);
    }
    if prober.others_grew() > budget.margin.percent(10.0) {
        notes.push(Note::OthersGrew { grew: prober.others_grew() });
    }
    notes
}

/// What a command did not let us set or see.
fn of_command(subject: &Subject, choice: &Choice) -> Vec<Note> {
    let Some(command) = subject.command() else { return Vec::new() };
    let mut notes = Vec::new();
    let mut kept = Vec::new();
    if choice.precision == Precision::AsIs {
        kept.push("precision".to_owned());
    }
    if choice.checkpointing == Checkpointing::AsIs {
        kept.push("checkpointing".to_owned());
    }
    if !kept.is_empty() {
        notes.push(Note::AsTheCommandDoes { what: kept });
    }
    if !command.varies(Variable::Accumulation) && choice.accumulation > 1 {
        notes.push(Note::OwnAccumulation { steps: choice.accumulation });
    }
    if !command.varies(Variable::Steps) {
        notes.push(Note::EndedEarly);
    }
    notes
}

/// The next larger micro-batches that a plan states though only the twin, of which the first
/// `on_twin` measurements are, has tried them.
fn next_on_twin(plan: &Plan, on_twin: usize) -> Vec<Tried> {
    plan.recommendation
        .iter()
        .chain(&plan.alternatives)
        .filter_map(|choice| {
            let next = choice.next.filter(|next| next.evidence < on_twin)?;
            Some(Tried { setting: choice.setting(), micro_batch: next.micro_batch })
        })
        .collect()
}

/// Of points that failed, or do not count as fitting.
fn of_points(findings: &Findings, plan: &Plan) -> Vec<Note> {
    let (mut notes, mut points) = (Vec::new(), Vec::new());
    for known in &findings.measurements {
        let (setting, micro_batch) = (known.point.setting, known.point.micro_batch);
        let tried = Tried { setting, micro_batch };
        match &known.outcome {
            Outcome::Failed { message, .. } => {
                notes.push(Note::PointFailed { setting, micro_batch, reason: message.clone() });
            }
            _ if known.verdict(plan.budget.budget) == Verdict::Tight
                && !points.contains(&tried) =>
            {
                points.push(tried);
            }
            _ => {}
        }
    }
    if !points.is_empty() {
        notes.push(Note::Tight { points });
    }
    notes
}
