//! How the recommendation is known, as lines for the head of what is handed over.

use super::Recommended;
use crate::error::one_line;
use crate::measurement::EvidenceKind;
use crate::plan::{Note, Plan};
use crate::units::Bytes;

/// What was planned, on which evidence, and what one should know before relying on it. No line holds
/// a line end or a control character, whatever the plan's names are.
pub(super) fn lines(recommended: Recommended<'_>) -> Vec<String> {
    let Recommended { plan, choice } = recommended;
    let name = plan.workload.subject.name();
    let class = plan.built.as_ref().map_or_else(String::new, |it| format!(" ({})", it.model));
    let sequence =
        plan.workload.sequence.map_or_else(String::new, |tokens| format!(" at {tokens} tokens"));
    let mut lines = vec![
        format!("{name}{class}{sequence} on {}", plan.device.name),
        format!(
            "{}, {}, checkpointing {}",
            batches(recommended),
            choice.precision,
            choice.checkpointing
        ),
        peak(recommended),
    ];
    lines.extend(choice.speed.as_ref().map(|speed| format!("speed {}", speed.in_one_line())));
    lines.push(evidence(recommended));
    if plan.incomplete {
        lines.push(Note::Incomplete.to_string());
    }
    lines.extend(plan.notes.iter().filter(|note| is_for_training(note)).map(ToString::to_string));
    lines.iter().map(|line| one_line(line)).collect()
}

fn batches(Recommended { plan, choice }: Recommended<'_>) -> String {
    let rest = choice.remainder.map_or_else(String::new, |rest| format!(" + {rest}"));
    let gpus = match plan.goal.world_size {
        1 => String::new(),
        gpus => format!(", on each of {gpus} GPUs"),
    };
    format!(
        "target batch {} = micro-batch {} x {} steps{rest}{gpus}",
        choice.effective_batch, choice.micro_batch, choice.accumulation
    )
}

fn peak(Recommended { plan, choice }: Recommended<'_>) -> String {
    let mut held_back = vec![format!("{} margin", plan.budget.margin)];
    for (bytes, what) in
        [(plan.budget.reserve, "reserve"), (plan.budget.held_by_others, "held by others")]
    {
        if bytes > Bytes::ZERO {
            held_back.push(format!("{bytes} {what}"));
        }
    }
    format!(
        "peak {} of a budget of {}; held back besides: {}",
        choice.memory.device_peak,
        plan.budget.budget,
        held_back.join(" and ")
    )
}

fn evidence(Recommended { plan, choice }: Recommended<'_>) -> String {
    // The reader of plans sees to it that the index is one of a measurement.
    let Some(measured) = plan.measurements.get(choice.evidence) else { return String::new() };
    let by = &measured.evidence;
    let on = match by.kind {
        EvidenceKind::Real => format!("measured on the card itself, {}", by.gpu),
        EvidenceKind::Virtual => {
            format!("measured on {}, where no kernel is executed", plan.device.product)
        }
    };
    format!(
        "{on}; PyTorch {}, CUDA {}, cuDNN {}, driver {}, vramfit {}",
        by.torch, by.cuda, by.cudnn, by.driver, plan.versions.vramfit
    )
}

/// Whether a note matters to who trains by the plan, rather than to who reads the search.
fn is_for_training(note: &Note) -> bool {
    match note {
        Note::BatchNorm { .. }
        | Note::WorldSize { .. }
        | Note::AllocatorVariable { .. }
        | Note::ContextOfProfile { .. }
        | Note::WindowsDesktop { .. }
        | Note::NoTensorCores { .. }
        | Note::LaptopPower { .. }
        | Note::Spills
        | Note::NotImplemented { .. }
        | Note::ReadBacks { .. }
        | Note::DataDependentSizes { .. }
        | Note::InternalError { .. } => true,
        // Said by `Plan::incomplete`.
        Note::Incomplete
        | Note::StoppedBy { .. }
        | Note::ChangesUntried { .. }
        | Note::RankedWithoutTimes
        | Note::PrecisionsLeftOut { .. }
        | Note::NoCheckpointing
        | Note::BlocksNotChosen { .. }
        | Note::AsTheCommandDoes { .. }
        | Note::OwnAccumulation { .. }
        | Note::EndedEarly
        | Note::PointFailed { .. }
        | Note::Tight { .. }
        | Note::ProcessUnnamed
        | Note::OthersGrew { .. }
        | Note::TwinDiffers { .. }
        | Note::NextOnTwin { .. }
        | Note::NoTwin { .. } => false,
    }
}

/// Variables that the plan was measured with, and holds only with.
pub(super) fn variables(plan: &Plan) -> impl Iterator<Item = (&str, &str)> {
    plan.notes.iter().filter_map(|note| match note {
        Note::AllocatorVariable { variable, value } => Some((variable.as_str(), value.as_str())),
        _ => None,
    })
}
