//! Whether gradients are equal, and why not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Fit, Measured, MeasuredCase, MeasuredOwn};

/// Rounding differs from one order of summing to the next by no more than so many times.
const NOISE: f64 = 10.0;
/// From how many units of rounding on what another seed changes is no rounding.
const RANDOM: f64 = 10.0;
/// Factors that are that near are one factor.
const ALIKE: f64 = 1e-3;

/// What became of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Apart by rounding alone.
    Equal,
    /// Apart by more than that.
    Unequal,
    /// No two passes are alike, so that there is nothing to compare.
    Random,
}

/// Why gradients are not equal, found by trying.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// They are with batch norm on its running statistics.
    BatchNorm {
        /// The difference then.
        frozen: f64,
    },
    /// They are if all micro-batches count this much.
    Scale {
        /// 1 is as they did.
        factor: f64,
    },
    /// They are if the micro-batches count this much each: the loss is a mean over unequal counts.
    Counts {
        /// 1 is as they did.
        factors: Vec<f64>,
    },
    /// No weighting helps: a sample's loss depends on the others that are seen with it.
    Coupled {
        /// The least difference that weighting leaves.
        left: f64,
    },
}

/// Accumulated and full gradient, in some precisions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// Of all precisions.
    pub verdict: Verdict,
    /// Where they are not equal.
    pub cause: Option<Cause>,
    /// One a precision.
    pub measured: Vec<Measured>,
}

/// A built-in way to accumulate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GradientCase {
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it must come to.
    pub expected: Verdict,
    /// Why, and what to do about it.
    pub lesson: String,
    /// What it came to.
    #[serde(flatten)]
    pub gradient: Compared,
}

/// A user's own function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OwnGradient {
    /// Class of the model.
    pub model: String,
    /// Samples of the full batch.
    pub target_batch: u32,
    /// Samples of a micro-batch.
    pub micro_batch: u32,
    /// Batch norms that use the statistics of what they see, by name.
    pub batch_norms: Vec<String>,
    /// Dropout modules that were switched off for the comparison.
    pub dropouts: Vec<String>,
    /// All but batch norm was in evaluation mode for it, since something else was random.
    pub evaluated: bool,
    /// What it came to.
    #[serde(flatten)]
    pub gradient: Compared,
}

impl Measured {
    /// How far apart rounding can bring equal gradients. Reordering the samples shows how much noise
    /// there is in a sum, but not always: with autocast each micro-batch's gradient is rounded to 16 bits
    /// once more, by at most half a unit.
    pub fn tolerance(&self) -> f64 {
        (NOISE * self.reordering).max(self.epsilon)
    }

    /// What it comes to in this precision.
    pub fn verdict(&self) -> Verdict {
        match self.difference {
            _ if self.seed > RANDOM * self.epsilon => Verdict::Random,
            difference if difference <= self.tolerance() => Verdict::Equal,
            // Also what is no number.
            _ => Verdict::Unequal,
        }
    }

    fn cause(&self) -> Cause {
        if let Some(frozen) = self.frozen.filter(|frozen| *frozen <= self.tolerance()) {
            return Cause::BatchNorm { frozen };
        }
        let Fit { factors, left } = &self.fit;
        // What is fitted is rounded too.
        if *left > NOISE * self.tolerance() || factors.is_empty() {
            return Cause::Coupled { left: *left };
        }
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        match factors.iter().all(|factor| (factor - mean).abs() <= ALIKE * mean.abs()) {
            true => Cause::Scale { factor: mean },
            false => Cause::Counts { factors: factors.clone() },
        }
    }
}

impl Compared {
    fn of(measured: Vec<Measured>) -> Self {
        let is = |wanted| measured.iter().any(|it: &Measured| it.verdict() == wanted);
        let verdict = match () {
            () if is(Verdict::Random) => Verdict::Random,
            () if is(Verdict::Unequal) => Verdict::Unequal,
            () => Verdict::Equal,
        };
        let cause = match verdict {
            Verdict::Unequal => most_exact(&measured).map(Measured::cause),
            _ => None,
        };
        Self { verdict, cause, measured }
    }

    /// What tells most of it.
    pub fn most_exact(&self) -> Option<&Measured> {
        most_exact(&self.measured)
    }
}

fn most_exact(measured: &[Measured]) -> Option<&Measured> {
    measured.iter().min_by(|one, other| one.epsilon.total_cmp(&other.epsilon))
}

impl GradientCase {
    pub(super) fn of(case: MeasuredCase) -> Self {
        let MeasuredCase { name, title, expected, lesson, measured } = case;
        Self { name, title, expected, lesson, gradient: Compared::of(measured) }
    }

    /// Whether PyTorch did what it must.
    pub fn is_as_expected(&self) -> bool {
        self.gradient.verdict == self.expected
    }
}

impl OwnGradient {
    pub(super) fn of(own: MeasuredOwn) -> Self {
        Self {
            model: own.model,
            target_batch: own.target_batch,
            micro_batch: own.micro_batch,
            batch_norms: own.batch_norms,
            dropouts: own.dropouts,
            evaluated: own.evaluated,
            gradient: Compared::of(own.measured),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fp32 has it, equal.
    fn measured() -> Measured {
        Measured {
            precision: "fp32".to_owned(),
            epsilon: f64::from(f32::EPSILON),
            difference: 2e-7,
            reordering: 1e-7,
            seed: 0.0,
            fit: Fit { factors: vec![1.0; 4], left: 2e-7 },
            frozen: None,
            parameters: Vec::new(),
        }
    }

    fn cause(measured: Measured) -> Option<Cause> {
        Compared::of(vec![measured]).cause
    }

    #[test]
    fn rounding_is_told_from_a_difference() {
        assert_eq!(Compared::of(vec![measured()]).verdict, Verdict::Equal);
        // More than ten times what reordering does.
        let apart = Measured { difference: 2e-6, ..measured() };
        assert_eq!(Compared::of(vec![measured(), apart]).verdict, Verdict::Unequal);
        let nothing = Measured { difference: f64::NAN, ..measured() };
        assert_eq!(nothing.verdict(), Verdict::Unequal);
        // Sixteen bits are rounded once a micro-batch, though reordering changes nothing.
        let coarse = Measured { epsilon: 2f64.powi(-7), difference: 2e-3, ..measured() };
        assert_eq!(coarse.verdict(), Verdict::Equal);
    }

    #[test]
    fn what_depends_on_the_seed_is_neither_equal_nor_unequal() {
        let random = Measured { difference: 0.1, reordering: 0.1, seed: 0.1, ..measured() };
        let compared = Compared::of(vec![random]);
        assert_eq!((compared.verdict, compared.cause), (Verdict::Random, None));
    }

    #[test]
    fn causes_are_found_by_what_helps() {
        let apart = Measured { difference: 0.3, ..measured() };
        assert_eq!(
            cause(Measured { frozen: Some(1e-7), ..apart.clone() }),
            Some(Cause::BatchNorm { frozen: 1e-7 })
        );
        let fit = |factors: &[f64], left| Fit { factors: factors.to_vec(), left };
        let quarter = Measured { fit: fit(&[0.25, 0.250_001], 1e-7), ..apart.clone() };
        assert!(
            matches!(cause(quarter), Some(Cause::Scale { factor }) if (factor - 0.25).abs() < 1e-5)
        );
        let uneven = Measured { fit: fit(&[0.8, 1.7], 1e-7), ..apart.clone() };
        assert_eq!(cause(uneven), Some(Cause::Counts { factors: vec![0.8, 1.7] }));
        // Frozen statistics do not help where something else is wrong as well.
        let other = Measured { frozen: Some(0.2), fit: fit(&[1.1, 0.9], 0.28), ..apart };
        assert_eq!(cause(other), Some(Cause::Coupled { left: 0.28 }));
    }
}
