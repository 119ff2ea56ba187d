//! Memory that grows from step to step.
//!
//! Where steps are known, what tensors hold after the optimizer's step is looked at: activations are
//! gone then. Else it is what NVML tells, minute by minute, which also sees the allocator's cache and
//! is trusted less. The trend and its chance are those of Theil and Sen, Mann and Kendall
//! ([`growth`](super::growth)); the confidence is Kendall's τ, shrunk for few samples.

use serde::Serialize;

use super::finding::{Fault, Finding, Numbers, Worded};
use super::growth::{Sample, growth};
use super::kept::{self, Grown, Trap};
use super::processes::{Line, Process, processes, readings, warm_up};
use super::recording::{Gpu, Reading, Recording};
use super::statistics::median;
use crate::units::{Bytes, count, duration, significant};

/// Numbers of a leak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leak {
    /// What grows.
    pub grows: Grows,
    /// Of a distributed run, that of the process that grows most.
    pub rank: Option<u32>,
    /// Optimizer steps so far, where they are known.
    pub steps: Option<u64>,
    /// Steps, or seconds, that were looked at.
    pub span: f64,
    /// Bytes a step, or a second.
    pub slope: f64,
    /// The interval that holds the slope with 95 %.
    pub slopes: (f64, f64),
    /// How likely as much growth is without a trend; none where what is held falls back now and then.
    pub chance: Option<f64>,
    /// What is held at the end.
    pub held: Bytes,
    /// The most graphs that were held at once though backward passes had gone through them.
    pub graphs: Option<u64>,
    /// Whether Python's collector has run meanwhile, where that is known.
    pub collected: Option<bool>,
    /// How many steps more there is memory for.
    pub steps_left: Option<f64>,
    /// And for how many seconds.
    pub seconds_left: Option<f64>,
    /// The program has asked in vain for so much.
    pub ran_out: Option<Bytes>,
    /// Where what grows was made, largest first.
    pub kept: Vec<Grown>,
    /// The mistake that it looks like.
    pub trap: Option<Trap>,
    /// Other ranks in which it grows as well.
    pub also: Vec<u32>,
}

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grows {
    /// What tensors hold of the GPU, step by step.
    Tensors,
    /// Graphs on the host alone.
    Graphs,
    /// What the program holds of the GPU, by the second.
    Device,
    /// What all programs hold of the GPU, by the second.
    WholeDevice,
}

/// Growth over a run that is below this is none: the allocator gives no less than 512 bytes.
const LEAST: f64 = 2048.0;
/// Samples that are needed, and where the program ran out of memory.
const FEWEST: usize = 8;
const FEWEST_BEFORE_THE_END: usize = 4;
/// Growth by less than this in a step is called small.
const SMALL: f64 = 4096.0;
/// Scalars that are kept without a graph are not worth a word if there is memory for so many steps.
const LONG: f64 = 1e5;
/// How much less sure it is where Python's collector has not run yet, which may give it back.
const UNCOLLECTED: f64 = 0.7;
/// How sure readings of the driver are of a leak of the program, and those of everybody's memory.
const BY_PROCESS: f64 = 0.6;
const BY_EVERYBODY: f64 = 0.4;
/// Readings that are needed.
const FEWEST_READINGS: usize = 30;

pub(super) fn find(recording: &Recording) -> Option<Finding> {
    let processes = processes(recording);
    let mut found: Vec<_> =
        processes.iter().filter_map(|it| of_steps(recording, it, &processes)).collect();
    if found.is_empty() && processes.iter().all(|it| it.steady().len() < FEWEST) {
        let gpus = recording.watched.gpus.iter();
        found.extend(gpus.filter_map(|gpu| of_readings(recording, gpu)));
    }
    found.sort_by(|a, b| b.leak.slope.total_cmp(&a.leak.slope));
    let also = found.iter().skip(1).filter_map(|it| it.leak.rank).collect();
    let Found { leak, confidence, from, until, pid } = found.into_iter().next()?;
    let numbers = Numbers::Leak(Leak { also, ..leak });
    Some(Finding { fault: Fault::Leak, confidence, from, until, pid, numbers })
}

/// A leak of one process or GPU.
struct Found {
    leak: Leak,
    confidence: f64,
    from: f64,
    until: f64,
    pid: Option<u32>,
}

fn of_steps(recording: &Recording, process: &Process<'_>, all: &[Process<'_>]) -> Option<Found> {
    let steps = without_end(process.steady());
    let fewest = match process.out_of_memory.is_empty() {
        true => FEWEST,
        false => FEWEST_BEFORE_THE_END,
    };
    let (first, last) = (steps.first()?, steps.last()?);
    let bytes = growth(&samples(steps), LEAST, fewest);
    let graphs = graphs(steps, fewest);
    let slope = bytes.map_or(0.0, |it| it.slope);
    let steps_left = bytes.map(|it| room(recording, process, all) / it.slope);
    let counted = steps.iter().all(|line| line.step.graphs.is_some());
    let long = steps_left.is_none_or(|left| left > LONG);
    if graphs.is_none() && counted && slope < SMALL && long {
        return None;
    }
    let collected =
        last.step.collected.map(|now| first.step.collected.is_some_and(|before| now != before));
    let confidence = match (bytes, graphs) {
        (None, graphs) => graphs?,
        (Some(bytes), Some(graphs)) => bytes.confidence.max(graphs),
        (Some(bytes), None) if collected == Some(false) => UNCOLLECTED * bytes.confidence,
        (Some(bytes), None) => bytes.confidence,
    };
    let kept = match bytes {
        Some(_) => kept::grown(process, first.step.step),
        None => Vec::new(),
    };
    let leak = Leak {
        grows: if bytes.is_some() { Grows::Tensors } else { Grows::Graphs },
        rank: process.rank,
        steps: Some(last.step.step),
        span: last.step.step.saturating_sub(first.step.step) as f64,
        slope,
        slopes: bytes.map_or((0.0, 0.0), |it| it.slopes),
        chance: bytes.map(|it| it.chance),
        held: last.step.allocated,
        graphs: graphs.and(steps.iter().filter_map(|line| line.step.graphs).max()),
        collected,
        steps_left,
        seconds_left: steps_left.zip(pace(steps)).map(|(left, seconds)| left * seconds),
        ran_out: process.out_of_memory.last().map(|it| it.1),
        trap: kept::trap(&kept, graphs.is_some() && slope < SMALL),
        kept,
        also: Vec::new(),
    };
    let (from, until) = (first.at, last.at);
    Some(Found { leak, confidence, from, until, pid: Some(process.pid) })
}

/// Without a last line that holds less: it may tell of the process's end, where a list that has grown
/// is gone.
fn without_end<'a>(steps: &'a [Line<'a>]) -> &'a [Line<'a>] {
    match steps {
        [rest @ .., before, last] if last.step.allocated < before.step.allocated => {
            &steps[..rest.len() + 1]
        }
        _ => steps,
    }
}

fn samples(steps: &[Line<'_>]) -> Vec<Sample> {
    let sample = |Line { step, .. }: &Line<'_>| Sample {
        at: step.step as f64,
        level: step.allocated.0 as f64,
        transient: step.allocated_peak.saturating_sub(step.allocated).0 as f64,
    };
    steps.iter().map(sample).collect()
}

/// How sure it is that graphs pile up: they grow, or their number rises in most steps and falls back at
/// the end of an epoch, say. That is the share of steps in which it rises, times n / (n + 2).
fn graphs(steps: &[Line<'_>], fewest: usize) -> Option<f64> {
    const MOST_STEPS: f64 = 0.7;
    const PILE: u64 = 5;
    let sample = |Line { step, .. }: &Line<'_>| {
        Some(Sample { at: step.step as f64, level: step.graphs? as f64, transient: 0.0 })
    };
    let counted: Vec<Sample> = steps.iter().filter_map(sample).collect();
    if let Some(grown) = growth(&counted, PILE as f64, fewest) {
        return Some(grown.confidence);
    }
    let rises = counted
        .windows(2)
        .filter(|pair| pair[1].level - pair[0].level >= 0.5 * (pair[1].at - pair[0].at).max(1.0));
    let share = rises.count() as f64 / counted.len() as f64;
    let most = counted.iter().map(|it| it.level).fold(0.0, f64::max);
    let piles = counted.len() >= fewest && share >= MOST_STEPS && most >= PILE as f64;
    let n = counted.len() as f64;
    piles.then(|| share * n / (n + 2.0))
}

/// Seconds of a step: the program's own, or those on the wall.
fn pace(steps: &[Line<'_>]) -> Option<f64> {
    let own = median(steps.iter().filter_map(Line::seconds));
    let (first, last) = (steps.first()?, steps.last()?);
    let count = last.step.step.saturating_sub(first.step.step);
    own.or_else(|| (count > 0).then(|| (last.at - first.at) / count as f64))
}

/// What is left for tensors at the process's last peaks: the GPU's memory less what others hold and
/// what the process holds beside its allocator.
fn room(recording: &Recording, process: &Process<'_>, all: &[Process<'_>]) -> f64 {
    const LAST: usize = 10;
    let steps = &process.steps[process.steps.len().saturating_sub(LAST)..];
    let peak = steps.iter().map(|line| line.step.allocated_peak.0).max().unwrap_or(0);
    let Some(gpu) = gpu_of(recording, process) else { return f64::INFINITY };
    let beside = beside(recording, gpu, all);
    (gpu.total.0 as f64 - gpu.held.0 as f64 - beside - peak as f64).max(0.0)
}

/// The GPU that a process is likely on: the only one, that of its rank, or else the first.
fn gpu_of<'a>(recording: &'a Recording, process: &Process<'_>) -> Option<&'a Gpu> {
    let gpus = &recording.watched.gpus;
    let index = process.rank.map_or(0, |rank| rank as usize % gpus.len().max(1));
    gpus.get(index)
}

/// What is held of a GPU beside PyTorch's allocator and what was held before: contexts, libraries, and
/// what others have taken since. Known where the program has one GPU.
fn beside(recording: &Recording, gpu: &Gpu, all: &[Process<'_>]) -> f64 {
    let used = readings(recording, gpu.index).last().map(|(_, reading)| reading.used.0);
    let (Some(used), 1) = (used, recording.watched.gpus.len()) else { return 0.0 };
    let reserved = all.iter().filter_map(|it| it.steps.last());
    let reserved: f64 = reserved.map(|line| line.step.reserved.0 as f64).sum();
    (used as f64 - gpu.held.0 as f64 - reserved).max(0.0)
}

fn of_readings(recording: &Recording, gpu: &Gpu) -> Option<Found> {
    let all = readings(recording, gpu.index);
    let all = &all[warm_up(all.len())..];
    let named = all.iter().filter(|(_, reading)| reading.process.is_some()).count();
    let by_process = named * 10 >= all.len() * 9;
    let level = |reading: &Reading| match by_process {
        true => reading.process,
        false => Some(reading.used),
    };
    let samples: Vec<Sample> = all
        .iter()
        .filter_map(|(at, reading)| {
            Some(Sample { at: *at, level: level(reading)?.0 as f64, transient: 0.0 })
        })
        .collect();
    let least = (gpu.total.0 as f64 / 100.0).max(Bytes::mib(64).0 as f64);
    let grown = growth(&samples, least, FEWEST_READINGS)?;
    let (from, until) = (samples.first()?.at, samples.last()?.at);
    let used = all.last()?.1.used;
    let left = gpu.total.saturating_sub(used).0 as f64 / grown.slope;
    let leak = Leak {
        grows: if by_process { Grows::Device } else { Grows::WholeDevice },
        rank: None,
        steps: None,
        span: until - from,
        slope: grown.slope,
        slopes: grown.slopes,
        chance: Some(grown.chance),
        held: Bytes(samples.last()?.level as u64),
        graphs: None,
        collected: None,
        steps_left: None,
        seconds_left: Some(left),
        ran_out: None,
        kept: Vec::new(),
        trap: None,
        also: Vec::new(),
    };
    let trust = if by_process { BY_PROCESS } else { BY_EVERYBODY };
    Some(Found { leak, confidence: grown.confidence * trust, from, until, pid: None })
}

impl Leak {
    /// Bytes, by which unit of time.
    fn rate(&self, slope: f64) -> String {
        match self.grows {
            Grows::Tensors | Grows::Graphs => format!("{} a step", bytes(slope)),
            Grows::Device | Grows::WholeDevice => format!("{} a minute", bytes(slope * 60.0)),
        }
    }

    /// When memory runs out, as a sentence goes on.
    fn end(&self) -> Option<String> {
        if self.ran_out.is_some() {
            return Some("until it ran out".to_owned());
        }
        // Beyond, it is longer than anybody trains.
        const MOST_STEPS: f64 = 1e8;
        let time = self.seconds_left.filter(|it| it.is_finite()).map(|it| duration(it, 2));
        match (self.steps_left, time) {
            (Some(steps), _) if steps >= MOST_STEPS => None,
            (Some(steps), None) => Some(format!("and runs out in {} steps", rounded(steps))),
            (Some(steps), Some(time)) => {
                Some(format!("and runs out in {} steps, which take {time}", rounded(steps)))
            }
            (None, time) => time.map(|time| format!("and runs out in {time}")),
        }
    }
}

impl Worded for Leak {
    fn headline(&self) -> String {
        let on = self.rank.map_or_else(String::new, |rank| format!(" on rank {rank}"));
        let small = self.slope < SMALL;
        match self.grows {
            Grows::Graphs => format!(
                "graphs are kept{on}, up to {} in {} steps: they fill the host's memory, not the GPU's",
                count(self.graphs.unwrap_or(0)),
                count(self.steps.unwrap_or(0))
            ),
            Grows::Tensors if self.graphs.is_some() && small => format!(
                "graphs are kept{on}, up to {} in {} steps, with {}: little on the GPU, more on the host",
                count(self.graphs.unwrap_or(0)),
                count(self.steps.unwrap_or(0)),
                self.rate(self.slope)
            ),
            _ => {
                let by = self.rate(self.slope);
                let whose = match self.grows {
                    Grows::WholeDevice => "the GPU's used memory",
                    _ => "memory",
                };
                let end = self.end().map_or_else(String::new, |end| format!(" {end}"));
                let verb = if self.ran_out.is_some() { "grew" } else { "grows" };
                format!("{whose} {verb}{on} by {by}{end}")
            }
        }
    }

    fn evidence(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.slope > 0.0 {
            let span = match self.grows {
                Grows::Tensors | Grows::Graphs => format!("{} steps", count(self.span as u64)),
                Grows::Device | Grows::WholeDevice => duration(self.span, 2),
            };
            lines.push(format!(
                "{} more over {span}, {} at the end",
                bytes(self.slope * self.span),
                self.held
            ));
            lines.push(format!(
                "the slope lies from {} to {} with 95 % (Theil–Sen)",
                self.rate(self.slopes.0),
                self.rate(self.slopes.1)
            ));
        }
        lines.extend(
            self.chance.map(|it| {
                format!("chance of as much without a trend: {} (Mann–Kendall)", chance(it))
            }),
        );
        lines.extend(self.graphs.map(|graphs| {
            format!(
                "up to {} graphs are held that backward passes have gone through",
                count(graphs)
            )
        }));
        lines.extend(self.ran_out.map(|asked| format!("then {asked} were asked for in vain")));
        lines.extend(self.kept.iter().take(3).map(|grown| format!("more: {}", grown.words())));
        if self.collected == Some(false) && self.graphs.is_none() {
            lines.push(
                "Python's collector has not run meanwhile: what hangs in reference cycles falls back \
                 when it does"
                    .to_owned(),
            );
        }
        if self.grows == Grows::WholeDevice {
            lines.push("whose memory it is, the driver does not tell".to_owned());
        }
        if !self.also.is_empty() {
            let ranks: Vec<_> = self.also.iter().map(u32::to_string).collect();
            lines.push(format!("also on rank {}", ranks.join(", ")));
        }
        lines
    }

    fn remedies(&self) -> Vec<String> {
        let place = self.kept.iter().map(|it| it.place.as_str()).find(|place| !place.is_empty());
        let at = place.map_or_else(String::new, |place| format!(" of {place}"));
        let loss =
            "sum losses as numbers: `total += loss.item()`, or `loss.detach()` to stay on the GPU";
        let state =
            "cut the state off between steps: `hidden = hidden.detach()`, for an LSTM both tensors";
        let list = format!(
            "keep no tensors{at} from step to step; what must be kept, as `tensor.detach().cpu()`"
        );
        let retain = "call `backward()` without `retain_graph=True`";
        let places = "`vramfit watch --gpu NAME` names the lines whose tensors are kept".to_owned();
        let lint = "`vramfit lint` finds the usual causes in the text".to_owned();
        let mut remedies: Vec<String> = match self.trap {
            Some(Trap::RunningLoss) => vec![loss.to_owned()],
            Some(Trap::HiddenState) => vec![state.to_owned(), retain.to_owned()],
            Some(Trap::KeptTensors) => vec![list],
            Some(Trap::WholeGraph) => {
                vec![retain.to_owned(), state.to_owned(), format!("{loss}; {list}")]
            }
            None => vec![loss.to_owned(), list, state.to_owned()],
        };
        if self.trap.is_none() {
            remedies.push(places);
        }
        remedies.push(lint);
        remedies
    }
}

fn bytes(number: f64) -> String {
    Bytes(number.max(0.0).round() as u64).to_string()
}

/// A count to two digits.
fn rounded(number: f64) -> String {
    significant(number.max(1.0).round(), 2)
}

/// A probability as it is worth telling.
fn chance(value: f64) -> String {
    match value {
        ..1e-6 => "below one in a million".to_owned(),
        _ => significant(value, 1),
    }
}
