//! What a plan's numbers rest on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How each kind of number in a plan is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grounds {
    /// PyTorch's `max_memory_allocated`, and the named parts of it.
    pub allocated_peak: Ground,
    /// PyTorch's `max_memory_reserved`.
    pub reserved_peak: Ground,
    /// What NVML sees of the process: reserved and context.
    pub device_peak: Ground,
    /// What may be used of the GPU.
    pub budget: Ground,
    /// Step times, and all speeds that follow from them.
    #[serde(default)]
    pub step_time: Ground,
}

/// How one kind of number is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ground {
    /// How far it can be trusted.
    pub level: Level,
    /// For what reasons it is no better than that; empty where there is none.
    pub because: Vec<String>,
}

/// How far a number can be trusted, the most first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Read off the real GPU.
    Measured,
    /// PyTorch's own bookkeeping, with nothing estimated beneath it: the same on the real GPU with
    /// the same versions.
    Exact,
    /// Parts of it are estimates, each named.
    #[default]
    Estimated,
}

impl Ground {
    /// Read off the real GPU.
    pub fn measured() -> Self {
        Self { level: Level::Measured, because: Vec::new() }
    }

    /// Exact but for `reasons`.
    pub fn exact_but_for(reasons: Vec<String>) -> Self {
        let level = if reasons.is_empty() { Level::Exact } else { Level::Estimated };
        Self { level, because: reasons }
    }
}
