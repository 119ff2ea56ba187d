//! What a shorter context buys, where several lengths were asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Choice;
use crate::measurement::Setting;
use crate::workload::{Checkpointing, Precision};

/// The lengths that were asked for beside each other, and the longest that fits at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// Each length, ascending. The plan's recommendation is that of the longest that fits.
    pub lengths: Vec<Context>,
    /// The longest contexts that fit with one sample in a micro-batch: of the recommended setting and,
    /// unless that reaches the limit, of the one that is expected to go furthest. Empty where they were
    /// not looked for.
    pub longest: Vec<LongestContext>,
    /// Up to where it was looked for.
    pub limit: Limit,
}

/// One length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Tokens in one sample.
    pub tokens: u32,
    /// What came of it.
    pub answer: Answer,
    /// The best setting at this length, where one fits.
    pub choice: Option<Choice>,
    /// Tokens per second on one GPU with that setting; null where step times are not known.
    pub tokens_per_second: Option<f64>,
}

/// What came of a length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// A setting reaches the target within the budget.
    Fits,
    /// Not even one sample fits.
    DoesNotFit,
    /// The model has fewer positions.
    BeyondPositions,
    /// No point could be measured.
    NotMeasured {
        /// Why.
        reason: String,
    },
    /// The search ended before anything was known of it.
    NotReached,
}

/// The longest context of a setting that was run and fits, one sample at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongestContext {
    /// In which precision.
    pub precision: Precision,
    /// With which checkpointing.
    pub checkpointing: Checkpointing,
    /// Tokens of the longest that fits; null where none does.
    pub tokens: Option<u32>,
    /// Index of its measurement.
    pub evidence: Option<usize>,
    /// The next longer one, which was run and does not fit; null when there is none, or it was not
    /// reached.
    pub next: Option<NextContext>,
}

/// The next longer context, which does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextContext {
    /// Tokens in one sample.
    pub tokens: u32,
    /// Index of its measurement.
    pub evidence: usize,
}

/// The longest length that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Tokens in one sample.
    pub tokens: u32,
    /// Why none is longer.
    pub of: LimitOf,
}

/// What a [`Limit`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOf {
    /// The model has so many positions.
    Positions,
    /// It is the longest that was asked for; how many positions the user's model has is not known.
    Asked,
}

impl Context {
    /// Of a length without a setting that fits.
    pub fn without_choice(tokens: u32, answer: Answer) -> Self {
        Self { tokens, answer, choice: None, tokens_per_second: None }
    }

    /// Of a length with one.
    pub fn fitting(tokens: u32, choice: Choice) -> Self {
        let tokens_per_second = choice.samples_per_second.map(|it| it * f64::from(tokens));
        Self { tokens, answer: Answer::Fits, choice: Some(choice), tokens_per_second }
    }
}

impl LongestContext {
    /// Its knobs.
    pub fn setting(&self) -> Setting {
        Setting { precision: self.precision, checkpointing: self.checkpointing }
    }
}
