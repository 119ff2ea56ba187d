use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Version of the lines of a recording; raised by every change that an older reader would misread.
pub const RECORDING_SCHEMA: u32 = 1;

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since the program was started.
    pub at: f64,
    /// What was seen.
    #[serde(flatten)]
    pub event: Event,
}

/// What a line tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The program is about to start; the first line.
    Watched(Watched),
    /// NVML was read.
    Reading(Reading),
    /// A Python process has loaded PyTorch.
    Torch {
        /// Its id.
        pid: u32,
        /// Of a distributed run.
        rank: Option<u32>,
        /// PyTorch's version.
        version: String,
    },
    /// An optimizer has stepped.
    Step(Step),
    /// A whole model was run forward while it was set to evaluate.
    Pass(Pass),
    /// What is held now, by where it was made.
    Kept {
        /// The process.
        pid: u32,
        /// Optimizer steps so far.
        step: u64,
        /// The largest, and those that have grown most since the last such event, largest first.
        places: Vec<KeptAt>,
    },
    /// The allocator found no memory, whatever the program makes of it.
    OutOfMemory {
        /// The process.
        pid: u32,
        /// What was asked for.
        requested: Bytes,
    },
    /// The program has ended; the last line.
    Ended {
        /// Its exit status.
        status: Option<i32>,
        /// Or the signal that ended it.
        signal: Option<i32>,
    },
}

/// What is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// [`RECORDING_SCHEMA`] of the writer.
    pub schema: u32,
    /// Version of vramfit.
    pub vramfit: String,
    /// When the program was started, in seconds since 1970.
    pub started: u64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The GPUs that it may use.
    pub gpus: Vec<Gpu>,
    /// Whether the driver may put into host memory what does not fit (Windows, WSL).
    pub may_spill: bool,
}

/// A GPU that is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// NVML's index, or that of a virtual GPU.
    pub index: u32,
    /// NVML's name for it.
    pub name: String,
    /// Stands in for a card: its memory is exact, and it has neither clocks nor temperatures.
    pub virtual_gpu: bool,
    /// A laptop's.
    pub laptop: bool,
    /// All its memory.
    pub total: Bytes,
    /// Held before the program was started.
    pub held: Bytes,
    /// The highest clock of its multiprocessors, in MHz.
    pub highest_clock: Option<u32>,
    /// What it may draw, in milliwatts.
    pub power_limit: Option<u32>,
}

/// What NVML tells of a GPU at one moment; what it does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The GPU's index.
    pub gpu: u32,
    /// Held of it by whomever.
    pub used: Bytes,
    /// Held by the program and its children, where the driver names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Bytes>,
    /// Share of the last moments in which a kernel ran, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<u32>,
    /// Clock of the multiprocessors in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
    /// Drawn, in milliwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<u32>,
    /// In degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<u32>,
    /// Why the clock is lower than it could be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowdowns: Vec<Slowdown>,
    /// From the host, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// To the host, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
}

/// Why a clock is lower than it could be: NVML's clocks event reasons that concern who trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slowdown {
    /// It draws all it may (`SW_POWER_CAP`).
    PowerCap,
    /// The driver holds it back for heat (`SW_THERMAL_SLOWDOWN`).
    Heat,
    /// The hardware protects itself from heat (`HW_THERMAL_SLOWDOWN`).
    HardwareHeat,
    /// The power supply asks for less (`HW_POWER_BRAKE_SLOWDOWN`).
    PowerBrake,
    /// The hardware holds it back, for heat or power (`HW_SLOWDOWN`).
    Hardware,
}

/// What is known when an optimizer has stepped. Bytes are those of PyTorch's allocator on the
/// process's device. Peak, seconds and retries are of the time since the line before of the same
/// process; between quick steps no line is written, and `step` tells how many there were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The process.
    pub pid: u32,
    /// Steps of the optimizer that is furthest behind, from 1.
    pub step: u64,
    /// The program's own seconds; a virtual GPU's clock on a virtual GPU.
    pub seconds: Option<f64>,
    /// Of them, spent waiting for `torch.utils.data.DataLoader`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader_seconds: Option<f64>,
    /// Held by tensors now.
    pub allocated: Bytes,
    /// The most that they held.
    pub allocated_peak: Bytes,
    /// Held by the allocator now.
    pub reserved: Bytes,
    /// How often the allocator had to give memory back to get some.
    pub retries: u64,
    /// Collections of Python's garbage that have run in the process so far, by generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected: Option<Collected>,
    /// Graphs that a backward pass has gone through and that are held still: of each, the root or one
    /// of the few nodes below it. One or two in a healthy loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<u64>,
}

/// How often Python's collector of cyclic garbage has run, for each of its generations.
pub type Collected = [u64; 3];

/// A whole model that was run forward while it was set to evaluate (`model.eval()`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// The process.
    pub pid: u32,
    /// Optimizer steps so far.
    pub step: u64,
    /// Class of the model.
    pub model: String,
    /// Its result has a graph: neither `torch.no_grad` nor `torch.inference_mode` is in force.
    pub has_graph: bool,
    /// Held by tensors when it was done.
    pub allocated: Bytes,
    /// The most that they have held since the last line of a step or pass.
    pub allocated_peak: Bytes,
    /// Its graph was run backward: a part of a model that trains, such as a frozen backbone, or a
    /// network that a loss is taken from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trained: bool,
}

/// What is held of what was made at one place in the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptAt {
    /// The line of the program's own code, as in `train.py:42 in main`; empty where there is none.
    pub place: String,
    /// The innermost function of PyTorch, such as `relu`; `backward` in the backward pass.
    pub operator: String,
    /// The innermost module, such as `Linear`, with its class alone.
    pub module: Option<String>,
    /// Bytes of its blocks.
    pub bytes: Bytes,
    /// How many.
    pub blocks: u64,
}

/// A run as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What was watched.
    pub watched: Watched,
    /// All that followed, in the order of time.
    pub entries: Vec<Entry>,
}
