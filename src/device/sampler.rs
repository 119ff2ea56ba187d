use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use serde::{Deserialize, Serialize};

use super::descent::descends_from;
use super::real_gpu::process_bytes;
use crate::error::{Error, ErrorKind};
use crate::units::Bytes;

/// Between two readings: 250 a second, with room left for the reading itself to take a while.
const INTERVAL: Duration = Duration::from_millis(4);

/// Whose memory is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// One process's.
    Process(u32),
    /// A process's and that of all that descend from it.
    Family(u32),
}

impl Whose {
    fn includes(self, pid: u32) -> bool {
        match self {
            Self::Process(own) => pid == own,
            Self::Family(ancestor) => descends_from(pid, ancestor),
        }
    }
}

/// What was seen of one process, or family, on a GPU, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Held by the process at the last reading.
    pub process: Bytes,
    /// The most it held at a reading.
    pub process_peak: Bytes,
    /// The most the whole device held at a reading.
    pub device_peak: Bytes,
    /// The most that others held at a reading.
    pub others_peak: Bytes,
    /// The least that others held at a reading.
    pub others_least: Bytes,
    /// Others could be told apart at a reading.
    pub others_seen: bool,
    /// NVML named the process. Otherwise (Windows, WSL, containers) its use is what the device's
    /// grew by since before it started, and others cannot be told apart.
    pub by_process: bool,
    /// Readings since the last reset.
    pub readings: u64,
}

struct Shared {
    sight: Mutex<Sight>,
    ended: AtomicBool,
}

/// Reads NVML in a thread of its own while a worker runs.
pub struct Sampler {
    nvml: Arc<Nvml>,
    uuid: String,
    whose: Whose,
    baseline: u64,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Use of the whole device now; taken before a child starts, it is the child's baseline.
    pub fn baseline(nvml: &Nvml, uuid: &str) -> u64 {
        let device = nvml.device_by_uuid(uuid).ok();
        device.and_then(|device| device.memory_info().ok()).map_or(0, |memory| memory.used)
    }

    /// Starts to watch the GPU with this UUID.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        nvml: Arc<Nvml>,
        uuid: String,
        whose: Whose,
        baseline: u64,
    ) -> Result<Self, Error> {
        let shared =
            Arc::new(Shared { sight: Mutex::new(Sight::default()), ended: AtomicBool::new(false) });
        let watch = {
            let (nvml, uuid, shared) = (Arc::clone(&nvml), uuid.clone(), Arc::clone(&shared));
            move || {
                while !shared.ended.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    read(&nvml, &uuid, whose, baseline, &shared.sight);
                    thread::sleep(INTERVAL.saturating_sub(begun.elapsed()));
                }
            }
        };
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(watch)
            .map_err(|source| ErrorKind::NoThread { source })?;
        Ok(Self { nvml, uuid, whose, baseline, shared, thread: Some(thread) })
    }

    /// Forgets the peaks.
    pub fn reset(&self) {
        *lock(&self.shared.sight) = Sight::default();
    }

    /// What was seen since the last reset.
    pub fn seen(&self) -> Sight {
        *lock(&self.shared.sight)
    }

    /// Reads once more, and says what was seen since the last reset.
    pub fn look(&self) -> Sight {
        read(&self.nvml, &self.uuid, self.whose, self.baseline, &self.shared.sight);
        *lock(&self.shared.sight)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has said its say on stderr; there is nothing to add here.
            let _ = thread.join();
        }
    }
}

fn lock(sight: &Mutex<Sight>) -> std::sync::MutexGuard<'_, Sight> {
    sight.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(nvml: &Nvml, uuid: &str, whose: Whose, baseline: u64, sight: &Mutex<Sight>) {
    // Held while reading, so that no reading begun before a reset is taken in after it.
    let mut sight = lock(sight);
    let Ok(device) = nvml.device_by_uuid(uuid) else { return };
    let Ok(memory) = device.memory_info() else { return };
    let named = process_bytes(&device, |pid| whose.includes(pid));
    // Two questions are not one moment: others are told apart only where nothing moved in between.
    let still = device.memory_info().is_ok_and(|again| again.used == memory.used);
    sight.take_in(memory.used, named, baseline, still);
}

impl Sight {
    fn take_in(&mut self, used: u64, named: Option<u64>, baseline: u64, still: bool) {
        let process = Bytes(named.unwrap_or(used.saturating_sub(baseline)));
        let used = Bytes(used);
        let others = used.saturating_sub(process);
        // A process is not listed before its context is made: one listing tells that names are to
        // be had, and earlier readings by difference are then forgotten.
        if named.is_some() && !self.by_process {
            *self = Self { by_process: true, readings: self.readings, ..Self::default() };
        } else if named.is_none() && self.by_process {
            return;
        }
        self.readings += 1;
        self.process = process;
        self.process_peak = self.process_peak.max(process);
        self.device_peak = self.device_peak.max(used);
        if still {
            self.others_least = match self.others_seen {
                false => others,
                true => self.others_least.min(others),
            };
            self.others_peak = self.others_peak.max(others);
            self.others_seen = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_apart_where_the_process_is_named() {
        let mut sight = Sight::default();
        sight.take_in(500, Some(200), 300, true);
        sight.take_in(900, Some(500), 300, true);
        sight.take_in(700, Some(400), 300, true);
        assert_eq!((sight.process, sight.process_peak), (Bytes(400), Bytes(500)));
        assert_eq!((sight.others_least, sight.others_peak), (Bytes(300), Bytes(400)));
        assert_eq!((sight.device_peak, sight.by_process), (Bytes(900), true));
    }

    #[test]
    fn a_reading_that_something_moved_in_says_nothing_of_others() {
        let mut sight = Sight::default();
        sight.take_in(500, Some(200), 300, true);
        sight.take_in(500, Some(450), 300, false);
        assert_eq!((sight.others_least, sight.others_peak), (Bytes(300), Bytes(300)));
        assert_eq!(sight.process_peak, Bytes(450));
    }

    #[test]
    fn a_process_without_a_name_is_what_the_device_grew_by() {
        let mut sight = Sight::default();
        sight.take_in(800, None, 300, true);
        assert_eq!((sight.process, sight.by_process), (Bytes(500), false));
    }

    #[test]
    fn readings_by_difference_give_way_to_readings_by_name() {
        let mut sight = Sight::default();
        sight.take_in(800, None, 300, true);
        sight.take_in(800, Some(100), 300, true);
        assert_eq!((sight.process_peak, sight.others_peak), (Bytes(100), Bytes(700)));
    }
}
