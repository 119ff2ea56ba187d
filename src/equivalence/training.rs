//! What trainings with different settings have in common, and what not.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{MeasuredPeak, MeasuredRun, MeasuredTraining, Peak, Setting, Validation};

/// Steps over which a training loss is averaged, since batches differ.
const AVERAGED: usize = 10;
/// Steps in which a process still warms up.
const COLD: usize = 2;

/// The built-in training with each setting.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Training {
    /// Optimizer steps.
    pub steps: u32,
    /// Samples in each.
    pub batch: u32,
    /// Tokens in a sample.
    pub length: u32,
    /// Numbers in the model.
    pub parameters: u64,
    /// Nats per token below which no model comes in the long run.
    pub entropy: f64,
    /// Floating-point operations after which training losses are compared: those that the cheapest
    /// setting took in all.
    pub compute: u64,
    /// The GPU whose memory the peaks are of; null where they are not known.
    pub peaks_on: Option<String>,
    /// Whether that is a virtual one.
    pub peaks_are_virtual: bool,
    /// Why there are no peaks.
    pub peaks_failure: Option<String>,
    /// One a setting, timed side by side: a step of each in turn.
    pub runs: Vec<TrainingRun>,
}

/// How a setting trained.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrainingRun {
    /// The setting.
    pub setting: Setting,
    /// Memory at the peak.
    pub peak: Option<Peak>,
    /// By the median step.
    pub tokens_per_second: f64,
    /// All steps together.
    pub wall_seconds: f64,
    /// Floating-point operations of a step, in products and attention, with what is done twice.
    pub step_flops: u64,
    /// Training loss after [`Training::compute`]: the mean of the last ten steps until then.
    pub loss_at_compute: f64,
    /// Steps until then.
    pub steps_at_compute: u32,
    /// Steps that the gradient scaler left out, since a gradient was infinite.
    pub skipped: u32,
    /// At the end.
    pub validation: Validation,
    /// Training loss of each step.
    pub losses: Vec<f64>,
    /// Seconds of each step.
    pub seconds: Vec<f64>,
}

/// Peaks, and whose they are.
#[derive(Clone, Debug, PartialEq)]
pub struct PeaksOn {
    /// The GPU.
    pub gpu: String,
    /// Whether it is a virtual one.
    pub is_virtual: bool,
    /// One a setting that this GPU has.
    pub peaks: Vec<MeasuredPeak>,
    /// Why there are none.
    pub failure: Option<String>,
}

impl Training {
    pub(super) fn of(training: MeasuredTraining, peaks: Option<PeaksOn>) -> Self {
        let totals = training.runs.iter().map(|run| run.flops * run.losses.len() as u64);
        let compute = totals.min().unwrap_or(0);
        let tokens = training.batch * training.length;
        let peak = |setting: &Setting| {
            let found = peaks.as_ref()?.peaks.iter().find(|it| it.setting == *setting)?;
            Some(found.peak)
        };
        Self {
            steps: training.steps,
            batch: training.batch,
            length: training.length,
            parameters: training.parameters,
            entropy: training.entropy,
            compute,
            runs: training
                .runs
                .into_iter()
                .map(|run| {
                    let peak = peak(&run.setting);
                    TrainingRun::of(run, peak, tokens, compute)
                })
                .collect(),
            peaks_on: peaks.as_ref().filter(|it| it.failure.is_none()).map(|it| it.gpu.clone()),
            peaks_are_virtual: peaks.as_ref().is_some_and(|it| it.is_virtual),
            peaks_failure: peaks.and_then(|it| it.failure),
        }
    }
}

impl TrainingRun {
    fn of(run: MeasuredRun, peak: Option<Peak>, tokens: u32, compute: u64) -> Self {
        let affordable = usize::try_from(compute / run.flops.max(1)).unwrap_or(usize::MAX);
        let steps = affordable.min(run.losses.len());
        let warm = &run.seconds[COLD.min(run.seconds.len().saturating_sub(1))..];
        Self {
            tokens_per_second: f64::from(tokens) / median(warm),
            wall_seconds: run.seconds.iter().sum(),
            step_flops: run.flops,
            loss_at_compute: mean(&run.losses[steps.saturating_sub(AVERAGED)..steps]),
            steps_at_compute: u32::try_from(steps).unwrap_or(u32::MAX),
            setting: run.setting,
            peak,
            skipped: run.skipped,
            validation: run.validation,
            losses: run.losses,
            seconds: run.seconds,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len(), sorted.len() % 2) {
        (0, _) => f64::NAN,
        (_, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn setting(precision: &str, checkpointed: bool) -> Setting {
        Setting { precision: precision.to_owned(), micro_batch: 4, accumulation: 4, checkpointed }
    }

    fn run(setting: Setting, flops: u64) -> MeasuredRun {
        MeasuredRun {
            setting,
            losses: (0..40).rev().map(f64::from).collect(),
            seconds: std::iter::once(9.0).chain([0.5; 39]).collect(),
            flops,
            skipped: 0,
            validation: Validation { loss: 1.0, accuracy: 0.5 },
        }
    }

    fn training(peaks: Option<PeaksOn>) -> Training {
        let runs = vec![run(setting("fp32", false), 300), run(setting("fp32", true), 400)];
        let (steps, batch, length) = (40, 16, 32);
        Training::of(
            MeasuredTraining { steps, batch, length, parameters: 1, entropy: 0.2, runs },
            peaks,
        )
    }

    #[test]
    fn losses_are_compared_after_the_same_compute() {
        let runs = training(None).runs;
        // 40 x 300 operations are 30 steps of 400; losses fall by one a step.
        assert_eq!((runs[0].steps_at_compute, runs[0].loss_at_compute), (40, 4.5));
        assert_eq!((runs[1].steps_at_compute, runs[1].loss_at_compute), (30, 14.5));
    }

    #[test]
    fn rates_leave_the_warm_up_out_and_the_wall_clock_does_not() {
        let run = &training(None).runs[0];
        assert_eq!(run.tokens_per_second, 1024.0);
        assert_eq!(run.wall_seconds, 28.5);
    }

    #[test]
    fn a_peak_is_that_of_its_own_setting() {
        let peak =
            Peak { tensors: Bytes::mib(3), workspace: Bytes::mib(8), reserved: Bytes::mib(20) };
        let peaks = vec![MeasuredPeak { setting: setting("fp32", true), peak }];
        let on = PeaksOn { gpu: "card".to_owned(), is_virtual: true, peaks, failure: None };
        let training = training(Some(on));
        assert_eq!(training.runs[0].peak, None);
        assert_eq!(training.runs[1].peak, Some(peak));
        assert_eq!(training.peaks_on.as_deref(), Some("card"));
    }
}
