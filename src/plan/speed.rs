//! How fast a way to train is, and how that is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measurement::{EvidenceKind, Measurement, StepTime};
use crate::profile::uncertainty::Uncertainty;
use crate::units::{duration, significant};
use crate::workload::Goal;

/// Speeds that differ by less, in hundredths of the faster, count as equal: what a few steps on a real
/// GPU cannot tell apart.
const MEASURED_TIE: f64 = 1.0;
/// Of modelled ones. The host's part of them is measured on a machine that does other things too.
const MODELLED_TIE: f64 = 5.0;

/// How fast one GPU trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// How it is known.
    pub basis: SpeedBasis,
    /// Seconds of one whole optimizer step.
    pub step_seconds: Figure,
    /// Samples per second.
    pub samples_per_second: Figure,
    /// Tokens per second; null where samples are no sequences of a known length.
    pub tokens_per_second: Option<Figure>,
    /// Where the step's time goes, in seconds; null where it was measured, which does not tell.
    pub split: Option<StepTime>,
}

/// How a speed is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpeedBasis {
    /// Steps ran on the real GPU.
    Measured,
    /// The virtual GPU's cost model: see docs/speed.md.
    Modelled,
}

/// A figure and the range in which the truth is expected; of a measured one both are the figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The least.
    pub low: f64,
    /// The figure itself.
    pub value: f64,
    /// The most.
    pub high: f64,
}

/// How long training on so many samples takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Samples that were asked for, over all GPUs.
    pub samples: u64,
    /// Optimizer steps that they make up, the last perhaps a smaller one.
    pub optimizer_steps: u64,
    /// Seconds of all steps: training alone, without what a program does besides.
    pub seconds: Figure,
}

impl Speed {
    /// What a measurement says; nothing where its steps have no time, or only the time that PyTorch
    /// took to launch them. `sequence` is the number of tokens in a sample.
    pub fn of(
        measurement: &Measurement,
        sequence: Option<u32>,
        uncertainty: &Uncertainty,
    ) -> Option<Self> {
        let ran = measurement.ran().filter(|ran| ran.step_seconds > 0.0)?;
        let seconds = ran.step_seconds;
        let (basis, step_seconds, split) = match (measurement.evidence.kind, ran.step_time) {
            (EvidenceKind::Real, _) => (SpeedBasis::Measured, Figure::exactly(seconds), None),
            (EvidenceKind::Virtual, Some(split)) => {
                let (low, high) = uncertainty.around(seconds, split.compute);
                let figure = Figure { low, value: seconds, high };
                (SpeedBasis::Modelled, figure, Some(split))
            }
            (EvidenceKind::Virtual, None) => return None,
        };
        let samples_per_second = step_seconds.rate(f64::from(measurement.point.samples()));
        let tokens_per_second = sequence.map(|it| samples_per_second.times(f64::from(it)));
        Some(Self { basis, step_seconds, samples_per_second, tokens_per_second, split })
    }

    /// Speeds below this one that count as equal to it reach down to this many samples per second.
    pub fn tie(&self) -> f64 {
        let percent = match self.basis {
            SpeedBasis::Measured => MEASURED_TIE,
            SpeedBasis::Modelled => MODELLED_TIE,
        };
        self.samples_per_second.value * (1.0 - percent / 100.0)
    }

    /// The step time in words: `280 ms`, or of a modelled one `280 to 520 ms`.
    pub fn step_time(&self) -> String {
        self.basis.range(self.step_seconds, duration)
    }

    /// Samples and tokens per second in words.
    pub fn throughput(&self) -> String {
        let samples = self.basis.range(self.samples_per_second, significant);
        match self.tokens_per_second {
            None => format!("{samples} samples/s"),
            Some(tokens) => {
                let tokens = self.basis.range(tokens, significant);
                format!("{samples} samples/s, {tokens} tokens/s")
            }
        }
    }

    /// Tokens per second in words; `-` where samples have none.
    pub fn tokens(&self) -> String {
        let of = |tokens| self.basis.range(tokens, significant);
        self.tokens_per_second.map_or_else(|| "-".to_owned(), of)
    }

    /// Both, and how they are known.
    pub fn in_one_line(&self) -> String {
        let how = self.basis.word();
        format!("{how}: {} for a step, {}", self.step_time(), self.throughput())
    }

    /// How long `samples` take, at the target batch of `goal`.
    pub fn training(&self, samples: u64, goal: &Goal) -> Training {
        let optimizer_steps = samples.div_ceil(u64::from(goal.target_batch));
        // By the samples, not by whole steps: the last may be smaller.
        let steps = samples as f64 / f64::from(goal.target_batch);
        Training { samples, optimizer_steps, seconds: self.step_seconds.times(steps) }
    }
}

impl SpeedBasis {
    /// As it stands in a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Modelled => "modelled",
        }
    }

    /// Significant digits that a figure of this kind deserves.
    pub fn digits(self) -> i32 {
        match self {
            Self::Measured => 3,
            Self::Modelled => 2,
        }
    }

    /// A figure's range in words, or the figure where that is all there is.
    pub fn range(self, figure: Figure, words: fn(f64, i32) -> String) -> String {
        let (low, high) = (words(figure.low, self.digits()), words(figure.high, self.digits()));
        if low == high {
            return high;
        }
        // The unit once where both have the same.
        match (low.rsplit_once(' '), high.rsplit_once(' ')) {
            (Some((number, unit)), Some((_, of_high)))
                if unit == of_high
                    && !unit.starts_with(|it: char| it.is_ascii_digit())
                    && !number.contains(char::is_alphabetic) =>
            {
                format!("{number} to {high}")
            }
            _ => format!("{low} to {high}"),
        }
    }
}

impl Figure {
    /// One that is known.
    pub fn exactly(value: f64) -> Self {
        Self { low: value, value, high: value }
    }

    /// So many times as much.
    pub fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, value: self.value * factor, high: self.high * factor }
    }

    /// `amount` for each of this: of seconds, so many a second.
    fn rate(self, amount: f64) -> Self {
        Self { low: amount / self.high, value: amount / self.value, high: amount / self.low }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measurement::{Evidence, Memory, Outcome, Point, Ran, Setting};
    use crate::workload::{Checkpointing, Precision};

    const GOAL: Goal = Goal { target_batch: 64, world_size: 2, ragged: false };

    fn measured(kind: EvidenceKind, step_seconds: f64, split: Option<StepTime>) -> Measurement {
        let setting = Setting { precision: Precision::Fp32, checkpointing: Checkpointing::None };
        Measurement {
            sequence: None,
            point: Point::to_probe(setting, 8, &GOAL),
            outcome: Outcome::Ran(Ran {
                memory: Memory::default(),
                allocator_retries: 0,
                step_seconds,
                step_time: split,
            }),
            evidence: Evidence::of(kind),
            probe_seconds: 0.0,
        }
    }

    fn speed(kind: EvidenceKind, seconds: f64, split: Option<StepTime>) -> Option<Speed> {
        Speed::of(&measured(kind, seconds, split), Some(512), &Uncertainty::uncalibrated())
    }

    #[test]
    fn a_measured_speed_is_one_figure() {
        let speed = speed(EvidenceKind::Real, 0.5, Some(StepTime::default())).unwrap();
        assert_eq!(speed.basis, SpeedBasis::Measured);
        assert_eq!(speed.samples_per_second, Figure::exactly(64.0));
        assert_eq!(speed.tokens_per_second, Some(Figure::exactly(64.0 * 512.0)));
        assert_eq!(speed.split, None);
    }

    #[test]
    fn what_a_virtual_gpu_did_not_model_has_no_speed() {
        assert_eq!(speed(EvidenceKind::Virtual, 0.5, None), None);
        assert_eq!(speed(EvidenceKind::Virtual, 0.0, Some(StepTime::default())), None);
    }

    #[test]
    fn training_counts_the_samples_of_all_gpus() {
        let speed = speed(EvidenceKind::Real, 0.5, None).unwrap();
        let training = speed.training(1000, &GOAL);
        assert_eq!((training.optimizer_steps, training.seconds.value), (16, 7.8125));
    }

    #[test]
    fn ranges_name_their_unit_once() {
        let words =
            |low, high, words| SpeedBasis::Modelled.range(Figure { low, value: low, high }, words);
        assert_eq!(words(0.28, 0.52, duration as fn(f64, i32) -> String), "280 to 520 ms");
        assert_eq!(words(0.8, 1.2, duration), "800 ms to 1.2 s");
        assert_eq!(words(5400.0, 7200.0, duration), "1 h 30 min to 2 h");
        assert_eq!(words(5400.0, 6600.0, duration), "1 h 30 min to 1 h 50 min");
        assert_eq!(words(12_000.0, 23_400.0, significant), "12 000 to 23 000");
        assert_eq!(words(2.0, 2.01, significant), "2.0");
    }

    proptest! {
        #[test]
        fn ranges_hold_their_figure(seconds in 1e-4..1e3f64, share in 0.0..1.0f64) {
            let split = StepTime { compute: seconds * share, ..StepTime::default() };
            let speed = speed(EvidenceKind::Virtual, seconds, Some(split)).unwrap();
            for figure in [speed.step_seconds, speed.samples_per_second] {
                prop_assert!(figure.low < figure.value && figure.value < figure.high);
            }
            let product = speed.samples_per_second.low * speed.step_seconds.high;
            prop_assert!((product - 64.0 / 2.0).abs() < 1e-6);
        }
    }
}
