use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::recording::{Event, Recording, Step};
use crate::units::Bytes;

/// Steps at the beginning that say nothing of how long one takes: libraries choose their kernels.
const WARM_UP: u64 = 2;

/// A run in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// How long the program ran, or was watched.
    pub seconds: f64,
    /// Whether its end was seen.
    pub ended: bool,
    /// Its exit status.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How often the allocators of all processes found no memory.
    pub out_of_memory: u64,
    /// The GPUs that were watched.
    pub gpus: Vec<GpuSummary>,
    /// The processes that trained with PyTorch, ranks in order.
    pub processes: Vec<ProcessSummary>,
}

/// What was seen of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GpuSummary {
    /// NVML's index, or that of a virtual GPU.
    pub index: u32,
    /// NVML's name for it.
    pub name: String,
    /// Stands in for a card.
    pub virtual_gpu: bool,
    /// All its memory.
    pub total: Bytes,
    /// Held before the program was started.
    pub held_before: Bytes,
    /// The most that was held at a reading, by whomever.
    pub used_peak: Bytes,
    /// The most that the program held at a reading, where the driver names processes.
    pub program_peak: Option<Bytes>,
    /// Mean share of the time in which a kernel ran, in percent.
    pub utilisation: Option<f64>,
    /// The highest temperature, in degrees Celsius.
    pub hottest: Option<u32>,
    /// Readings.
    pub readings: u64,
}

/// What was seen of a process that trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ProcessSummary {
    /// Its id.
    pub pid: u32,
    /// Of a distributed run.
    pub rank: Option<u32>,
    /// Its PyTorch.
    pub torch: Option<String>,
    /// Optimizer steps.
    pub steps: u64,
    /// Median seconds of a step; those of a virtual GPU's clock on a virtual GPU.
    pub step_seconds: Option<f64>,
    /// The most that tensors held, up to its last step.
    pub allocated_peak: Bytes,
    /// The most that the allocator held after a step.
    pub reserved_peak: Bytes,
}

impl Summary {
    /// Of a recording.
    pub fn of(recording: &Recording) -> Self {
        let mut summary = Self { gpus: gpus(recording), ..Self::default() };
        let mut about: BTreeMap<u32, (Option<u32>, String)> = BTreeMap::new();
        let mut steps: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
        let mut peaks: BTreeMap<u32, Bytes> = BTreeMap::new();
        for entry in &recording.entries {
            summary.seconds = summary.seconds.max(entry.at);
            match &entry.event {
                Event::Torch { pid, rank, version } => {
                    about.insert(*pid, (*rank, version.clone()));
                }
                Event::Step(step) => steps.entry(step.pid).or_default().push(step),
                Event::Pass(pass) => {
                    let peak = peaks.entry(pass.pid).or_default();
                    *peak = (*peak).max(pass.allocated_peak);
                }
                Event::OutOfMemory { .. } => summary.out_of_memory += 1,
                Event::Ended { status, signal } => {
                    (summary.ended, summary.status, summary.signal) = (true, *status, *signal);
                }
                Event::Reading(_) | Event::Kept { .. } | Event::Watched(_) => {}
            }
        }
        for (pid, steps) in steps {
            let (rank, torch) = about.remove(&pid).unzip();
            let peak = peaks.remove(&pid).unwrap_or_default();
            let held = |of: fn(&Step) -> Bytes| steps.iter().map(|it| of(it)).max();
            summary.processes.push(ProcessSummary {
                pid,
                rank: rank.flatten(),
                torch,
                steps: steps.last().map_or(0, |it| it.step),
                step_seconds: median(seconds(&steps)),
                allocated_peak: held(|it| it.allocated_peak).unwrap_or_default().max(peak),
                reserved_peak: held(|it| it.reserved).unwrap_or_default(),
            });
        }
        summary.processes.sort_by_key(|it| (it.rank, it.pid));
        summary
    }
}

fn gpus(recording: &Recording) -> Vec<GpuSummary> {
    let of = |gpu: &super::Gpu| {
        let readings = || {
            let readings = recording.entries.iter().filter_map(|it| match &it.event {
                Event::Reading(reading) => Some(reading),
                _ => None,
            });
            readings.filter(|it| it.gpu == gpu.index)
        };
        let rates: Vec<_> = readings().filter_map(|it| it.utilisation).collect();
        let mean = rates.iter().map(|it| f64::from(*it)).sum::<f64>() / rates.len() as f64;
        GpuSummary {
            index: gpu.index,
            name: gpu.name.clone(),
            virtual_gpu: gpu.virtual_gpu,
            total: gpu.total,
            held_before: gpu.held,
            used_peak: readings().map(|it| it.used).max().unwrap_or_default(),
            program_peak: readings().filter_map(|it| it.process).max(),
            utilisation: (!rates.is_empty()).then_some(mean),
            hottest: readings().filter_map(|it| it.temperature).max(),
            readings: readings().count() as u64,
        }
    };
    recording.watched.gpus.iter().map(of).collect()
}

/// Of one step each; a line may stand for several.
fn seconds(steps: &[&Step]) -> Vec<f64> {
    let pairs = steps.windows(2).filter(|pair| pair[1].step > pair[0].step.max(WARM_UP));
    let of = |pair: &[&Step]| Some(pair[1].seconds? / (pair[1].step - pair[0].step) as f64);
    pairs.filter_map(of).collect()
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let upper = *numbers.get(numbers.len() / 2)?;
    let lower = numbers[(numbers.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Entry, Gpu, Pass, Reading, Watched};

    fn of(events: Vec<(f64, Event)>) -> Summary {
        let gpus = vec![Gpu { index: 1, ..Gpu::default() }];
        let entries = events.into_iter().map(|(at, event)| Entry { at, event }).collect();
        Summary::of(&Recording { watched: Watched { gpus, ..Watched::default() }, entries })
    }

    #[test]
    fn steps_between_which_no_line_was_written_are_each_as_long() {
        let step = |step, seconds| {
            Event::Step(Step { pid: 7, step, seconds: Some(seconds), ..Step::default() })
        };
        let events = [step(1, 9.0), step(2, 9.0), step(3, 0.5), step(13, 4.0), step(14, 0.3)];
        let seen = of(events.map(|event| (1.0, event)).to_vec());
        assert_eq!((seen.processes[0].steps, seen.processes[0].step_seconds), (14, Some(0.4)));
    }

    #[test]
    fn peaks_are_those_of_steps_and_of_evaluation() {
        let step = Step { pid: 7, allocated_peak: Bytes(5), reserved: Bytes(6), ..Step::default() };
        let pass = Pass { pid: 7, allocated_peak: Bytes(9), ..Pass::default() };
        let seen = of(vec![(1.0, Event::Step(step)), (2.0, Event::Pass(pass))]);
        let process = &seen.processes[0];
        assert_eq!((process.allocated_peak, process.reserved_peak), (Bytes(9), Bytes(6)));
    }

    #[test]
    fn a_gpu_has_its_own_readings_and_what_is_not_told_is_absent() {
        let reading = |gpu, used, utilisation| {
            let used = Bytes(used);
            Event::Reading(Reading { gpu, used, utilisation, ..Reading::default() })
        };
        let events = [reading(0, 99, Some(99)), reading(1, 5, Some(20)), reading(1, 7, Some(40))];
        let seen = of(events.map(|event| (3.0, event)).to_vec());
        let gpu = &seen.gpus[0];
        assert_eq!((gpu.used_peak, gpu.utilisation, gpu.readings), (Bytes(7), Some(30.0), 2));
        assert_eq!((gpu.hottest, gpu.program_peak), (None, None));
        assert_eq!((seen.seconds, seen.ended), (3.0, false));
    }
}
