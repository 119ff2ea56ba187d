use crate::equivalence::{About, Setting, Training, TrainingRun};
use crate::report::table::{grid, indent, right, wrap};
use crate::units::Bytes;

/// Slower than in fp32 by more than that is worth a word.
const SLOW: f64 = 1.5;

/// One row a setting.
pub(super) fn table(training: &Training) -> String {
    let mut grid = grid();
    let at_compute = format!("loss at {}", operations(training.compute));
    grid.set_header(["setting", "peak", "tokens/s", "wall", &at_compute, "val. loss", "accuracy"]);
    for run in &training.runs {
        grid.add_row([
            name(&run.setting),
            run.peak.map_or_else(|| "-".to_owned(), |peak| mebibytes(peak.tensors)),
            format!("{:.0}", run.tokens_per_second),
            format!("{:.2} s", run.wall_seconds),
            format!("{:.3}", run.loss_at_compute),
            format!("{:.3}", run.validation.loss),
            format!("{:.1} %", run.validation.accuracy * 100.0),
        ]);
    }
    right(&mut grid, &[1, 2, 3, 4, 5, 6]);
    let title = format!(
        "Training: a language model of {} parameters, {} steps of {} samples of {} characters",
        training.parameters, training.steps, training.batch, training.length
    );
    format!("{title}\n{}", indent(&grid.to_string()))
}

/// How the numbers came about, and what stands out.
pub(super) fn notes(training: &Training, about: &About) -> String {
    let mut lines = vec![
        format!(
            "loss at {}: the training loss, a mean of ten steps, once a setting has done that many \
             floating-point operations in products and attention; checkpointing does some of them twice.",
            operations(training.compute)
        ),
        format!(
            "the text's own entropy is {:.3} nats per character; no model comes below it in the long run.",
            training.entropy
        ),
        "times were measured side by side, a step of each setting in turn; tokens/s is by the median step."
            .to_owned(),
    ];
    lines.push(peaks(training));
    lines.extend(slow(training, about));
    lines.extend(skipped(training));
    if training.runs.iter().any(|run| run.setting.precision == "pure-bf16") {
        lines.push(
            "pure bf16 keeps weights and the optimizer's state in 16 bits: half of that memory, but updates \
             less than 1/256 of a weight are rounded away, the more of them the longer a training goes."
                .to_owned(),
        );
    }
    let bullets: Vec<_> = lines.iter().map(|line| wrap(line, "  - ", "    ")).collect();
    format!("Notes\n{}", bullets.join("\n"))
}

/// As a row is called.
pub(super) fn name(setting: &Setting) -> String {
    let Setting { precision, micro_batch, accumulation, checkpointed } = setting;
    let precision = precision.replace('-', " ");
    let checkpointed = if *checkpointed { ", checkpointed" } else { "" };
    format!("{precision}, {micro_batch} x {accumulation}{checkpointed}")
}

fn peaks(training: &Training) -> String {
    let workspace =
        training.runs.iter().find_map(|run| run.peak).map_or(Bytes::ZERO, |it| it.workspace);
    let what = |gpu: &str| {
        format!(
            "peak: the most that PyTorch's allocator holds in tensors on {gpu}, besides cuBLAS's workspaces \
             of {workspace}, which larger models have too"
        )
    };
    match (&training.peaks_on, &training.peaks_failure) {
        (Some(gpu), _) if training.peaks_are_virtual => {
            format!("{}. The times are not that card's.", what(&format!("a virtual {gpu}")))
        }
        (Some(gpu), _) => format!("{}.", what(gpu)),
        (None, Some(reason)) => format!("peak: not known, since {reason}."),
        (None, None) => "peak: not known.".to_owned(),
    }
}

/// That 16 bits are no faster everywhere.
fn slow(training: &Training, about: &About) -> Option<String> {
    let rate = |wanted: &dyn Fn(&TrainingRun) -> bool| {
        training
            .runs
            .iter()
            .filter(|run| wanted(run))
            .map(|run| run.tokens_per_second)
            .reduce(f64::max)
    };
    let full = rate(&|run| run.setting.precision == "fp32")?;
    let half = rate(&|run| ["bf16", "fp16"].contains(&run.setting.precision.as_str()))?;
    (full > SLOW * half).then(|| {
        let why = match about.device.as_str() {
            "cpu" => format!(
                ": this CPU ({}) has no 16-bit arithmetic that PyTorch uses; a GPU with tensor cores is \
                 faster in 16 bits",
                about.name
            ),
            _ => String::new(),
        };
        format!("16 bits are {:.1} times as slow as fp32 here{why}.", full / half)
    })
}

fn skipped(training: &Training) -> Option<String> {
    let skipped: Vec<_> = training
        .runs
        .iter()
        .filter(|run| run.skipped > 0)
        .map(|run| format!("{} of {}", run.skipped, name(&run.setting)))
        .collect();
    (!skipped.is_empty()).then(|| {
        format!(
            "steps left out by the gradient scaler, which then scales less: {}.",
            skipped.join("; ")
        )
    })
}

fn mebibytes(bytes: Bytes) -> String {
    format!("{:.2} MiB", bytes.as_mib())
}

fn operations(count: u64) -> String {
    match count as f64 {
        count if count < 1e12 => format!("{:.1} GFLOP", count / 1e9),
        count => format!("{:.1} TFLOP", count / 1e12),
    }
}
