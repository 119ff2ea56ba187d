//! How fast, and at which price.

use super::{grid, indent, right, wrap};
use crate::measurement::StepTime;
use crate::plan::{Choice, Plan, Speed, SpeedBasis};
use crate::units::{count, duration, significant};
use crate::workload::Precision;

/// Rows of the front that are shown at most.
const FRONT: usize = 6;
/// Shares of a step's time, in hundredths, from which on a part is worth a word.
const SHOWN: f64 = 0.5;
const KEEPS_WAITING: f64 = 30.0;
const BOUNDS: f64 = 50.0;

/// Step time, throughput, the training that was asked for, and where the time goes.
pub(super) fn of_choice(choice: &Choice, plan: &Plan) -> Option<String> {
    let speed = choice.speed.as_ref()?;
    let each = if plan.goal.world_size > 1 { " on each GPU" } else { "" };
    let mut grid = grid();
    let step = format!("{} for {} samples", speed.step_time(), choice.effective_batch);
    grid.add_row(["step time".to_owned(), step]);
    grid.add_row(["throughput".to_owned(), format!("{}{each}", speed.throughput())]);
    if let Some(training) = plan.training {
        let samples = count(training.samples);
        let time = speed.basis.range(training.seconds, duration);
        grid.add_row([format!("{samples} samples"), time]);
    }
    if let Some(split) = speed.split {
        grid.add_row(["time goes to".to_owned(), shares(&split)]);
    }
    let how = speed.basis.word();
    let mut text = format!("Speed, {how}\n{}", indent(&grid.to_string()));
    if let Some(advice) = speed.split.and_then(|split| advice(&split, choice)) {
        text += &format!("\n{}", wrap(advice, "  ", "  "));
    }
    Some(text)
}

/// The parts of a step's time, each in hundredths of all, the largest first.
pub(in crate::report) fn parts(split: &StepTime) -> [(f64, &'static str); 5] {
    let mut parts = [
        (percent(split, split.compute), "arithmetic"),
        (percent(split, split.memory), "memory"),
        (percent(split, split.launch), "launches"),
        (percent(split, split.transfer), "copies"),
        (percent(split, split.host), "waiting for the host"),
    ];
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    parts
}

/// The parts in words.
fn shares(split: &StepTime) -> String {
    let parts = parts(split);
    let shown = parts.iter().filter(|(share, _)| *share >= SHOWN);
    shown.map(|(share, what)| format!("{share:.0} % {what}")).collect::<Vec<_>>().join(", ")
}

/// Hundredths of all parts: with several streams they may be more than the step's time.
fn percent(split: &StepTime, part: f64) -> f64 {
    let StepTime { compute, memory, launch, transfer, host, .. } = *split;
    let all = compute + memory + launch + transfer + host;
    if all > 0.0 { part / all * 100.0 } else { 0.0 }
}

/// What would help where one part dominates.
pub(in crate::report) fn advice(split: &StepTime, choice: &Choice) -> Option<&'static str> {
    let share = |part| percent(split, part);
    if share(split.host) + share(split.launch) >= KEEPS_WAITING {
        return Some(
            "the GPU waits for the host, taken to be as fast as this machine is now: a larger \
             micro-batch, torch.compile or CUDA graphs would help",
        );
    }
    if share(split.transfer) >= KEEPS_WAITING {
        return Some("copies hold it up: pinned memory and non_blocking=True would help");
    }
    match choice.precision {
        _ if share(split.memory) < BOUNDS => None,
        Precision::Fp32 | Precision::Tf32 | Precision::AsIs => Some(
            "the GPU's memory bounds it: mixed precision, a fused optimizer or torch.compile would help",
        ),
        Precision::Bf16 | Precision::Fp16 => {
            Some("the GPU's memory bounds it: a fused optimizer or torch.compile would help")
        }
    }
}

/// What the column of [`rate`] is headed by.
pub(in crate::report) fn rates(choice: &Choice) -> &'static str {
    match choice.speed.as_ref().and_then(|speed| speed.tokens_per_second) {
        Some(_) => "tokens/s",
        None => "samples/s",
    }
}

/// Tokens per second where samples have a length, else samples.
pub(in crate::report) fn rate(choice: &Choice) -> String {
    choice.speed.as_ref().map_or_else(
        || "-".to_owned(),
        |speed| {
            let rate = speed.tokens_per_second.unwrap_or(speed.samples_per_second);
            significant(rate.value, speed.basis.digits())
        },
    )
}

/// Samples per second of a rung against those of the rung before.
pub(in crate::report) fn change(before: Option<&Speed>, now: Option<&Speed>) -> String {
    let (Some(before), Some(now)) = (before, now) else { return String::new() };
    let rate = |speed: &Speed| speed.samples_per_second.value;
    match rate(now) / rate(before) {
        _ if rate(now) >= before.tie() && rate(before) >= now.tie() => "same".to_owned(),
        factor @ 1.5.. => format!("x {}", significant(factor, 2)),
        factor => format!("{:+.0} %", (factor - 1.0) * 100.0),
    }
}

/// What memory buys; nothing where there is no choice.
pub(super) fn front(plan: &Plan) -> Option<String> {
    let [least, _, ..] = plan.pareto.as_slice() else { return None };
    let mut grid = grid();
    let mut header = vec!["", "precision", "checkpointing", "micro-batch", "steps", "device peak"];
    header.push(rates(least));
    grid.set_header(header);
    // The ends, and what lies evenly between.
    let rows = plan.pareto.len().min(FRONT);
    let recommended = plan.recommendation.as_ref().map(|choice| choice.evidence);
    for row in 0..rows {
        let choice = &plan.pareto[row * (plan.pareto.len() - 1) / (rows - 1)];
        let is_recommended = recommended == Some(choice.evidence);
        let mut cells = vec![if is_recommended { "->" } else { "" }.to_owned()];
        cells.extend(super::cells(choice, plan));
        cells.push(rate(choice));
        grid.add_row(cells);
    }
    right(&mut grid, &[3, 4, 5, 6]);
    let meaning = "each is faster than all that take less memory, by more than counts as equal";
    let meaning = wrap(meaning, "  ", "  ");
    Some(format!("Memory against speed\n{}\n{meaning}", indent(&grid.to_string())))
}

/// How the speeds are known, for the end of a sentence.
pub(in crate::report) fn basis(speed: &Speed, plan: &Plan) -> String {
    match (speed.basis, plan.grounds.step_time.because.first()) {
        (SpeedBasis::Measured, _) => String::new(),
        (SpeedBasis::Modelled, None) => ", and times are modelled".to_owned(),
        (SpeedBasis::Modelled, Some(how)) => {
            format!(", and times are modelled ({how}; docs/speed.md)")
        }
    }
}
