//! A recording by process: what of it detectors look at.

use super::recording::{Event, KeptAt, Pass, Reading, Recording, Step};
use crate::units::Bytes;

/// What is known of one process that has loaded PyTorch, in the order in which it came.
#[derive(Debug)]
pub(super) struct Process<'a> {
    pub(super) pid: u32,
    pub(super) rank: Option<u32>,
    pub(super) steps: Vec<Line<'a>>,
    pub(super) passes: Vec<(f64, &'a Pass)>,
    /// With the optimizer steps so far.
    pub(super) kept: Vec<(u64, &'a [KeptAt])>,
    /// When there was no memory, and for how much.
    pub(super) out_of_memory: Vec<(f64, Bytes)>,
}

/// One line of a step; it may stand for several quick ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) at: f64,
    pub(super) step: &'a Step,
    /// Steps since the line before.
    count: u64,
}

impl Line<'_> {
    /// Seconds of one step.
    pub(super) fn seconds(&self) -> Option<f64> {
        let seconds = self.step.seconds? / self.count as f64;
        (seconds.is_finite() && seconds > 0.0).then_some(seconds)
    }

    /// Of them, spent waiting for the loader.
    pub(super) fn waiting(&self) -> Option<f64> {
        let seconds = self.seconds()?;
        let waiting = self.step.loader_seconds? / self.count as f64;
        waiting.is_finite().then(|| waiting.clamp(0.0, seconds))
    }
}

impl<'a> Process<'a> {
    /// The steps after warm-up: the first tenth, and two at least, are left out.
    pub(super) fn steady(&self) -> &[Line<'a>] {
        &self.steps[warm_up(self.steps.len())..]
    }
}

/// How many of so many steps are warm-up: the allocator's cache, an optimizer's state and a loader's
/// workers come up in them.
pub(super) fn warm_up(steps: usize) -> usize {
    (steps / 10).max(2).min(steps)
}

/// The processes, in the order in which they are met.
pub(super) fn processes(recording: &Recording) -> Vec<Process<'_>> {
    let mut found: Vec<Process<'_>> = Vec::new();
    for entry in recording.entries.iter().filter(|entry| entry.at.is_finite()) {
        let pid = match &entry.event {
            Event::Torch { pid, .. } | Event::Kept { pid, .. } | Event::OutOfMemory { pid, .. } => {
                *pid
            }
            Event::Step(step) => step.pid,
            Event::Pass(pass) => pass.pid,
            Event::Watched(_) | Event::Reading(_) | Event::Ended { .. } => continue,
        };
        let index = found.iter().position(|it| it.pid == pid).unwrap_or_else(|| {
            found.push(Process {
                pid,
                rank: None,
                steps: Vec::new(),
                passes: Vec::new(),
                kept: Vec::new(),
                out_of_memory: Vec::new(),
            });
            found.len() - 1
        });
        let process = &mut found[index];
        match &entry.event {
            Event::Torch { rank, .. } => process.rank = *rank,
            Event::Step(step) => {
                let before = process.steps.last().map_or(0, |line| line.step.step);
                let count = step.step.saturating_sub(before).max(1);
                process.steps.push(Line { at: entry.at, step, count });
            }
            Event::Pass(pass) => process.passes.push((entry.at, pass)),
            Event::Kept { step, places, .. } => process.kept.push((*step, places)),
            Event::OutOfMemory { requested, .. } => {
                process.out_of_memory.push((entry.at, *requested));
            }
            Event::Watched(_) | Event::Reading(_) | Event::Ended { .. } => {}
        }
    }
    found
}

/// What NVML told of one GPU, in the order in which it came.
pub(super) fn readings(recording: &Recording, gpu: u32) -> Vec<(f64, &Reading)> {
    let told = recording.entries.iter().filter(|entry| entry.at.is_finite());
    told.filter_map(|entry| match &entry.event {
        Event::Reading(reading) if reading.gpu == gpu => Some((entry.at, reading)),
        _ => None,
    })
    .collect()
}
