//! What a Python child of a command tells of itself: `python/vramfit_steps`.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::measurement::StepTime;
use crate::units::Bytes;

/// Names the folder where processes tell how far they are, and marks whatever a run started.
pub(super) const FOLDER: &str = "VRAMFIT_STEPS_FOLDER";

/// How far a process is, in bytes and seconds. The names are those of `vramfit_steps.progress`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Progress {
    pub(super) torch: String,
    pub(super) cuda: String,
    /// Empty before CUDA is in use.
    pub(super) cudnn: String,
    /// Optimizer steps; of several optimizers, the one that is furthest behind counts.
    pub(super) steps: u32,
    /// It has seen its steps and waits to be ended.
    pub(super) waiting: bool,
    /// Those in use.
    pub(super) devices: Vec<OfDevice>,
    pub(super) weights: Bytes,
    pub(super) gradients: Bytes,
    pub(super) optimizer_state: Bytes,
    pub(super) activations: Bytes,
    /// What was asked for each time the allocator found no memory.
    pub(super) out_of_memory: Vec<Bytes>,
    /// From the end of one optimizer step to the end of the next.
    pub(super) step_seconds: Vec<f64>,
    /// Of the optimizer's own part.
    pub(super) optimizer_seconds: Vec<f64>,
    /// The same on a virtual GPU, with where it goes; else empty.
    pub(super) step_times: Vec<StepTime>,
    pub(super) optimizer_times: Vec<StepTime>,
}

/// PyTorch's own statistics of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct OfDevice {
    pub(super) allocated_peak: Bytes,
    pub(super) reserved_peak: Bytes,
    pub(super) retries: u64,
}

impl Progress {
    /// The device that it has most memory on.
    pub(super) fn device(&self) -> OfDevice {
        let devices = self.devices.iter().copied();
        devices.max_by_key(|device| device.reserved_peak).unwrap_or_default()
    }
}

/// What all processes have told so far. A process writes its file whole, so that one which cannot be
/// read is none of theirs.
pub(super) fn read(folder: &Path) -> Vec<Progress> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
        .collect()
}

/// Whether all that have begun to train have seen their steps, `ranks` of them where that is known.
pub(super) fn all_wait(progress: &[Progress], ranks: Option<u32>) -> bool {
    let mut training = progress.iter().filter(|it| it.steps > 0).peekable();
    let least = ranks.unwrap_or(1) as usize;
    training.peek().is_some() && training.clone().count() >= least && training.all(|it| it.waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wait_when_each_that_trains_has_seen_its_steps() {
        let at = |steps, waiting| Progress { steps, waiting, ..Progress::default() };
        assert!(!all_wait(&[], None));
        assert!(!all_wait(&[at(0, false)], None));
        assert!(all_wait(&[at(0, false), at(2, true)], None));
        assert!(!all_wait(&[at(1, false), at(2, true)], None));
        assert!(!all_wait(&[at(2, true)], Some(2)));
        assert!(all_wait(&[at(2, true), at(2, true)], Some(2)));
    }

    #[test]
    fn half_written_files_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("7.part"), "{}").unwrap();
        fs::write(folder.path().join("8.json"), "{\"steps\":").unwrap();
        assert_eq!(read(folder.path()), []);
    }
}
