//! Tables for a terminal, at most 100 columns wide.

pub(super) mod memory;
pub(super) mod speed;

use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};

use super::{Report, contexts};
use crate::measurement::{EvidenceKind, Setting};
use crate::plan::{Choice, Plan, Rung, Step, Versions};
use crate::units::Bytes;
use crate::workload::Checkpointing;

const WIDTH: u16 = 100;

/// What a person reads.
pub(super) struct Table;

impl Report for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn render(&self, plan: &Plan) -> String {
        let mut parts = vec![wrap(&headline(plan), "", "")];
        // Not wrapped: it is there to be copied.
        parts.extend(plan.command.as_ref().map(|line| format!("  {line}")));
        parts.push(wrap(&budget(plan), "", "  "));
        if let Some(choice) = &plan.recommendation {
            parts.push(memory::stack(&choice.memory, plan.budget.budget));
            parts.extend(speed::of_choice(choice, plan));
            parts.push(choices(choice, plan));
        }
        parts.extend(plan.contexts.as_ref().map(|it| contexts::table(it, plan)));
        if plan.ladder.iter().any(|rung| rung.device_peak.is_some()) {
            parts.push(ladder(plan));
        }
        parts.extend(speed::front(plan));
        if !plan.notes.is_empty() {
            let notes = plan.notes.iter().map(|note| bullet(&note.to_string()));
            parts.push(format!("Notes\n{}", notes.collect::<Vec<_>>().join("\n")));
        }
        parts.push(wrap(&format!("Evidence: {}", evidence(plan)), "", "  "));
        parts.join("\n\n")
    }
}

/// The answer in a sentence.
pub(super) fn headline(plan: &Plan) -> String {
    let name = plan.workload.subject.name();
    let class = plan.built.as_ref().map_or_else(String::new, |it| format!(" ({})", it.model));
    let sequence =
        plan.workload.sequence.map_or_else(String::new, |tokens| format!(" at {tokens} tokens"));
    let what = format!("{name}{class}{sequence}");
    match (&plan.recommendation, plan.would_fit.as_slice()) {
        (Some(choice), _) => format!(
            "Train {what} on {} with {}, {}.",
            plan.device.name,
            steps(choice),
            choice.setting()
        ),
        (None, _) if !plan.fits_nothing() => {
            format!("Stopped before anything was known of {what} on {}.", plan.device.name)
        }
        (None, []) if plan.incomplete => {
            format!("Not even one sample of {what} fits {}.", plan.device.name)
        }
        (None, []) => format!(
            "Not even one sample of {what} fits {}, and no single change was found that helps.",
            plan.device.name
        ),
        (None, changes) => {
            let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
            format!(
                "Not even one sample of {what} fits {}. It would with {}.",
                plan.device.name,
                changes.join("; or with ")
            )
        }
    }
}

/// How its micro-batches make up a step.
pub(super) fn steps(choice: &Choice) -> String {
    let Choice { micro_batch, accumulation, remainder, effective_batch, .. } = choice;
    let on_one_gpu = micro_batch * accumulation + remainder.unwrap_or(0);
    let gpus = match effective_batch / on_one_gpu.max(1) {
        1 => String::new(),
        gpus => format!(" on each of {gpus} GPUs"),
    };
    match (accumulation, remainder) {
        (1, None) => format!("a micro-batch of {micro_batch}{gpus}, no accumulation"),
        (_, None) => format!("a micro-batch of {micro_batch} x {accumulation} steps{gpus}"),
        (_, Some(rest)) => {
            let times = match accumulation {
                1 => String::new(),
                times => format!("{times} x "),
            };
            format!("micro-batches of {times}{micro_batch} and one of {rest}{gpus}")
        }
    }
}

/// What may be used, and what of the rest may not.
pub(super) fn budget(plan: &Plan) -> String {
    let budget = &plan.budget;
    let mut text = format!("Budget {} = {} usable", budget.budget, budget.usable);
    for (bytes, what) in [
        (budget.held_by_others, "held by others"),
        (budget.reserve, "reserve"),
        (budget.margin, "margin"),
    ] {
        if bytes > Bytes::ZERO {
            text += &format!(" - {bytes} {what}");
        }
    }
    format!("{text} (board: {})", budget.total)
}

fn choices(best: &Choice, plan: &Plan) -> String {
    let mut grid = grid();
    let all = || std::iter::once(best).chain(&plan.alternatives);
    let rates = all().any(|choice| choice.speed.is_some()).then(|| speed::rates(best));
    let mut header = vec!["", "precision", "checkpointing", "micro-batch", "steps", "device peak"];
    header.extend(rates);
    header.push("next");
    grid.set_header(header);
    for (index, choice) in all().enumerate() {
        let mut row = vec![if index == 0 { "->".to_owned() } else { String::new() }];
        row.extend(cells(choice, plan));
        row.extend(rates.map(|_| speed::rate(choice)));
        row.push(next(choice));
        grid.add_row(row);
    }
    right(&mut grid, if rates.is_some() { &[3, 4, 5, 6] } else { &[3, 4, 5] });
    format!("Settings that reach the target\n{}", indent(&grid.to_string()))
}

/// Why no larger micro-batch.
pub(super) fn next(choice: &Choice) -> String {
    choice.next.map_or_else(
        || "-".to_owned(),
        |next| match next.tight {
            true => format!("{} is too tight", next.micro_batch),
            false => format!("{} does not fit", next.micro_batch),
        },
    )
}

/// Cells of a choice: precision, checkpointing, micro-batch, steps, device peak.
fn cells(choice: &Choice, plan: &Plan) -> [String; 5] {
    let rest = choice.remainder.map_or_else(String::new, |rest| format!(" + {rest}"));
    [
        choice.precision.to_string(),
        checkpointing(choice.checkpointing, plan),
        format!("{}{rest}", choice.micro_batch),
        choice.accumulation.to_string(),
        choice.memory.device_peak.to_string(),
    ]
}

/// Its name; of some blocks how many, which is shorter.
pub(super) fn checkpointing(checkpointing: Checkpointing, plan: &Plan) -> String {
    match (checkpointing, plan.block_count()) {
        (Checkpointing::Blocks(blocks), Some(all)) => {
            format!("{} of {all} blocks", blocks.count())
        }
        _ => checkpointing.to_string(),
    }
}

fn ladder(plan: &Plan) -> String {
    let rungs = &plan.ladder;
    let mut grid = grid();
    let at = rungs.first().map_or(1, |rung| rung.micro_batch);
    let peak = format!("peak at {at}");
    let timed = rungs.iter().any(|rung| rung.speed.is_some());
    let mut header = vec!["step", "setting", &peak, "change"];
    header.extend(timed.then_some("speed"));
    header.extend(["largest", "target"]);
    grid.set_header(header);
    let mut before: Option<Bytes> = None;
    let mut speed_before = None;
    for rung in rungs {
        let mut row = vec![
            step(rung.step).to_owned(),
            setting(rung, plan),
            rung.device_peak.map_or_else(|| "out of memory".to_owned(), |peak| peak.to_string()),
            change(before, rung.device_peak),
        ];
        row.extend(timed.then(|| speed::change(speed_before, rung.speed.as_ref())));
        row.extend([
            rung.largest_micro_batch.map_or_else(|| "none".to_owned(), |size| size.to_string()),
            if rung.reaches_target { "yes" } else { "no" }.to_owned(),
        ]);
        grid.add_row(row);
        before = rung.device_peak;
        speed_before = rung.speed.as_ref();
    }
    right(&mut grid, if timed { &[2, 3, 4, 5] } else { &[2, 3, 4] });
    let of_speed = if timed { "  speed: samples/s against the step before\n" } else { "" };
    let meaning = "largest: the largest micro-batch that fits; target: whether it is reached so";
    format!("What each step buys\n{}\n{of_speed}  {meaning}", indent(&grid.to_string()))
}

/// Of a peak against the one before.
pub(super) fn change(before: Option<Bytes>, now: Option<Bytes>) -> String {
    match (before, now) {
        (Some(before), Some(now)) if now == before => "none".to_owned(),
        (Some(before), Some(now)) if now < before => format!("-{}", before - now),
        (Some(before), Some(now)) => format!("+{}", now - before),
        _ => String::new(),
    }
}

/// Of a rung, in few words.
pub(super) fn setting(rung: &Rung, plan: &Plan) -> String {
    let Rung { precision, checkpointing, .. } = *rung;
    match checkpointing {
        Checkpointing::Blocks(_) => {
            format!("{precision}, {}", self::checkpointing(checkpointing, plan))
        }
        _ => Setting { precision, checkpointing }.to_string(),
    }
}

/// A means of saving memory, on top of those before it.
pub(super) fn step(step: Step) -> &'static str {
    match step {
        Step::Plain => "plain",
        Step::MixedPrecision => "+ mixed precision",
        Step::Accumulation => "+ accumulation",
        Step::SelectiveCheckpointing => "+ selective",
        Step::Checkpointing => "+ checkpointing",
    }
}

/// How many points were run and where, and with what.
pub(super) fn evidence(plan: &Plan) -> String {
    let real = plan.measurements.iter().filter(|known| known.evidence.kind == EvidenceKind::Real);
    let (real, all) = (real.count(), plan.measurements.len());
    let on = match (real, all - real) {
        (0, n) => format!("{n} points run on the virtual GPU; no kernel was executed"),
        (n, 0) => format!("{n} points run on the GPU"),
        (n, m) => format!("{n} points run on the GPU, {m} on its virtual twin"),
    };
    let times = match &plan.recommendation {
        Some(choice) => choice.speed.as_ref().map_or_else(String::new, |it| speed::basis(it, plan)),
        None => String::new(),
    };
    format!("{on}{times}. {}.", versions(&plan.versions))
}

/// Of everything that the numbers depend on.
pub(super) fn versions(versions: &Versions) -> String {
    let stack: Vec<_> = [
        ("PyTorch", &versions.torch),
        ("CUDA", &versions.cuda),
        ("cuDNN", &versions.cudnn),
        ("driver", &versions.driver),
        ("vramfit", &versions.vramfit),
    ]
    .into_iter()
    .filter(|(_, version)| !version.is_empty())
    .map(|(name, version)| format!("{name} {version}"))
    .collect();
    stack.join(", ")
}

pub(super) fn grid() -> Grid {
    let mut grid = Grid::new();
    grid.load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH - 2);
    grid
}

pub(super) fn right(grid: &mut Grid, columns: &[usize]) {
    for column in columns {
        if let Some(column) = grid.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

pub(super) fn indent(text: &str) -> String {
    let lines = text.lines().map(|line| format!(" {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn bullet(text: &str) -> String {
    wrap(text, "  - ", "    ")
}

/// `text` as lines that begin with `first` and `rest`, broken at spaces so that none is wider than
/// 100 characters where words allow it.
pub fn wrap(text: &str, first: &str, rest: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > usize::from(WIDTH) {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    lines.push(line);
    lines.join("\n")
}
