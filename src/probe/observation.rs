use serde::{Deserialize, Serialize};

use crate::device::Sight;
use crate::measurement::Outcome;
use crate::units::Bytes;

/// What was seen of a worker from outside while it tried one point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The point was its worker's first, so that no kernel of another one was loaded before.
    pub fresh_worker: bool,
    /// What the worker held when it was ready and had no tensor yet, in bytes: its context.
    pub context_at_start: Bytes,
    /// The most it was seen to hold less the most the allocator reserved, in bytes. `None` where the
    /// readings missed that peak, or NVML does not name processes.
    pub context_at_peak: Option<Bytes>,
    /// Wall time of the point, in seconds.
    pub seconds: f64,
    /// NVML readings a second in that time.
    pub readings_per_second: f64,
    /// What was read.
    pub sight: Sight,
}

impl Observation {
    pub(super) fn new(
        context_at_start: Bytes,
        fresh_worker: bool,
        seconds: f64,
        sight: Sight,
        outcome: &Outcome,
    ) -> Self {
        let reserved = match outcome {
            Outcome::Ran(ran) if sight.by_process => Some(ran.memory.reserved_peak),
            _ => None,
        };
        Self {
            fresh_worker,
            context_at_start,
            context_at_peak: reserved
                .and_then(|reserved| sight.process_peak.get().checked_sub(reserved.get()))
                .map(Bytes),
            seconds,
            readings_per_second: if seconds > 0.0 { sight.readings as f64 / seconds } else { 0.0 },
            sight,
        }
    }
}
