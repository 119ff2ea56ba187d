//! What is known of a machine: facts, and nothing concluded from them. What could not be found out is
//! null.

use schemars::JsonSchema;
use serde::Serialize;

use crate::device::{NvmlFault, Platform};
use crate::profile::gpu::ComputeCapability;
use crate::units::Bytes;

/// Everything that bears on training here.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// The system around the GPUs.
    pub system: System,
    /// NVIDIA's driver.
    pub driver: Driver,
    /// NVIDIA's GPUs, by NVML or, where it is not asked or does not answer, by PCI.
    pub gpus: Vec<GpuFacts>,
    /// The Python that vramfit runs.
    pub python: Python,
    /// Whether virtual GPUs work here.
    pub virtual_gpus: VirtualGpus,
}

/// The system around the GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct System {
    /// Operating system.
    pub platform: Platform,
    /// Release of the kernel.
    pub kernel: String,
    /// The kind of container that vramfit runs in, e.g. `docker`.
    pub container: Option<String>,
    /// The board's own name, of a Jetson or the like whose GPU shares memory with the CPU.
    pub board: Option<String>,
    /// `/dev/nvidiactl` is there.
    pub device_files: bool,
    /// `/dev/dxg` is there, through which programs in WSL reach the GPU.
    pub dxg: bool,
    /// A Linux driver lies inside WSL, where it hides the one of Windows.
    pub linux_driver_in_wsl: bool,
    /// The machine runs on its battery; null where there is none to be seen.
    pub on_battery: Option<bool>,
    /// `CUDA_VISIBLE_DEVICES`, where it is set.
    pub visible_devices: Option<String>,
    /// The multi-process service's daemon runs.
    pub mps: bool,
    /// `CUDA_MPS_PINNED_DEVICE_MEM_LIMIT`, where it is set.
    pub mps_memory_limit: Option<String>,
}

/// NVIDIA's driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Driver {
    /// Whether NVML, the driver's own voice, answers.
    pub nvml: Access,
    /// Version, by NVML.
    pub version: Option<String>,
    /// The latest CUDA it supports, e.g. `13.0`.
    pub cuda: Option<String>,
    /// Version of the loaded kernel module.
    pub module: Option<String>,
    /// Version of the installed `libnvidia-ml.so.1`, by its file's name.
    pub library: Option<String>,
}

/// Whether something answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Access {
    /// It did.
    Answers,
    /// It was not asked, so that a sleeping GPU goes on sleeping.
    NotAsked,
    /// It failed.
    Fails {
        /// Which failure.
        fault: NvmlFault,
        /// In words.
        reason: String,
        /// What to do, where that is known.
        remedy: Option<String>,
    },
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GpuFacts {
    /// NVML's index.
    pub index: Option<u32>,
    /// PCI address, e.g. `0000:01:00.0`.
    pub pci: Option<String>,
    /// Product name: NVML's or, where it does not say, that of the PCI ID Repository.
    pub product: Option<String>,
    /// `GPU-…`.
    pub uuid: Option<String>,
    /// The profiles that describe it: one, none, or several where only PCI is known.
    pub profiles: Vec<String>,
    /// The kernel driver that holds it, e.g. `nvidia`, `nouveau`, `vfio-pci`.
    pub kernel_driver: Option<String>,
    /// It is powered down; nothing was asked of it.
    pub asleep: bool,
    /// Whether NVML answers for it.
    pub access: Access,
    /// CUDA compute capability, e.g. `8.6`.
    #[schemars(with = "Option<String>")]
    pub compute_capability: Option<ComputeCapability>,
    /// Memory now.
    pub memory: Option<Memory>,
    /// Who holds memory; null where NVML does not name processes.
    pub processes: Option<Vec<Process>>,
    /// What is shown through it.
    pub display: Display,
    /// Clocks, heat and power now.
    pub running: Running,
    /// Its link to the host.
    pub link: Link,
    /// Modes that an administrator sets, and memory errors.
    pub modes: Modes,
}

/// Memory of a board in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Memory {
    /// On the board.
    pub total: Bytes,
    /// Kept by the driver and the firmware.
    pub reserved: Bytes,
    /// Held by programs.
    pub held: Bytes,
    /// Not taken.
    pub free: Bytes,
}

/// A program that holds memory of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Process {
    /// Its id, as NVML sees it.
    pub pid: u32,
    /// Its program; null for one of another container or user.
    pub name: Option<String>,
    /// What it holds; null where the system does not tell (Windows, WSL).
    pub held: Option<Bytes>,
    /// Whether it computes with CUDA, rather than draws.
    pub computes: bool,
}

/// What is shown through a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Display {
    /// A screen is plugged in.
    pub attached: Option<bool>,
    /// A desktop uses it.
    pub active: Option<bool>,
}

/// Clocks, heat and power.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Running {
    /// Clock of the multiprocessors in MHz.
    pub clock: Option<u32>,
    /// The highest it can be.
    pub highest_clock: Option<u32>,
    /// Performance state, 0 the fastest.
    pub performance_state: Option<u32>,
    /// In degrees Celsius.
    pub temperature: Option<u32>,
    /// Temperature at which the hardware slows down.
    pub slowdown_temperature: Option<u32>,
    /// Power drawn in milliwatts.
    pub power: Option<u32>,
    /// The most it may draw in milliwatts.
    pub power_limit: Option<u32>,
    /// The limit it comes with, in milliwatts.
    pub default_power_limit: Option<u32>,
    /// Why clocks are below what they could be; empty when nothing holds them.
    pub slowed_by: Option<Vec<Slowdown>>,
    /// The GPU runs on a battery.
    pub on_battery: Option<bool>,
    /// Share of time in which it computed, in percent.
    pub utilization: Option<u32>,
}

/// Why clocks are low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Slowdown {
    /// Nothing to do.
    Idle,
    /// Clocks that somebody set.
    SetClocks,
    /// It draws what it may.
    PowerCap,
    /// Hardware halves the clocks or more: heat, power, or a brief change of state.
    Hardware,
    /// Bound to a group of GPUs that run at one clock.
    SyncBoost,
    /// The driver keeps it below its target temperature.
    SoftwareThermal,
    /// Too hot: hardware halves the clocks or more.
    HardwareThermal,
    /// The power supply asks for less.
    PowerBrake,
    /// Clocks that a display needs.
    DisplayClock,
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Link {
    /// Generation now; falls when idle.
    pub generation: Option<u32>,
    /// The most that GPU and slot manage.
    pub highest_generation: Option<u32>,
    /// Lanes now.
    pub width: Option<u32>,
    /// The most that GPU and slot manage.
    pub highest_width: Option<u32>,
}

/// Modes that an administrator sets, and memory errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Modes {
    /// Error-correcting memory is on.
    pub ecc: Option<bool>,
    /// Memory errors that could not be corrected since the driver was loaded.
    pub uncorrected_errors: Option<u64>,
    /// Divided into instances.
    pub mig: Option<bool>,
    /// The driver stays loaded without programs.
    pub persistence: Option<bool>,
    /// Who may compute.
    pub compute: Option<ComputeMode>,
}

/// Who may compute on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeMode {
    /// Any number of processes.
    Default,
    /// One process.
    ExclusiveProcess,
    /// Nobody.
    Prohibited,
}

/// A Python.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Python {
    /// Its path, or its name to be looked for in `PATH`.
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// Its PyTorch.
    pub torch: Option<Torch>,
    /// Why nothing is known of it, or of its PyTorch.
    pub failure: Option<PythonFailure>,
}

/// Why nothing is known of a Python or its PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "failure", rename_all = "kebab-case")]
pub enum PythonFailure {
    /// There is no such program.
    Missing,
    /// It has no module `torch`.
    NoTorch,
    /// `import torch` fails, or Python itself.
    Broken {
        /// The last line it wrote.
        reason: String,
    },
    /// It did not answer in time.
    Hung {
        /// How long was waited.
        seconds: u64,
    },
}

/// A PyTorch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct Torch {
    /// Version, e.g. `2.11.0+cu130`.
    pub version: String,
    /// CUDA it was built for; null for a build for the CPU.
    pub cuda: Option<String>,
    /// ROCm it was built for, which is AMD's.
    pub rocm: Option<String>,
    /// Version of cuDNN.
    pub cudnn: Option<String>,
    /// What it has kernels for, e.g. `sm_86`, `compute_90`.
    pub architectures: Vec<String>,
    /// Its attention can use flash attention.
    pub flash_attention: Option<bool>,
    /// Version of the package `flash-attn`, where it is installed.
    pub flash_attn: Option<String>,
    /// What came of opening CUDA; null where that was not tried.
    pub opened: Option<Opened>,
}

/// What came of opening CUDA in PyTorch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct Opened {
    /// On a virtual GPU, since the real one sleeps or there is none.
    #[serde(default)]
    pub on_virtual_gpu: bool,
    /// Why it failed.
    pub failure: Option<String>,
    /// The devices that PyTorch sees.
    pub devices: Vec<OpenedDevice>,
}

/// A device as PyTorch sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
pub struct OpenedDevice {
    /// Product name.
    pub name: String,
    /// CUDA's total: what programs can have at all.
    pub total: Bytes,
}

/// Whether virtual GPUs work here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VirtualGpus {
    /// Why none can be laid out; null where one was.
    pub failure: Option<String>,
    /// What to do about that, where it is known.
    pub remedy: Option<String>,
    /// What trains built-in models, asked on a virtual GPU.
    pub worker: Option<Worker>,
    /// Why the worker did not answer.
    pub worker_failure: Option<String>,
}

/// What trains built-in models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Worker {
    /// Version of the PyTorch (libtorch) it runs.
    pub torch: String,
    /// CUDA that this was built for.
    pub cuda: String,
    /// cuDNN in use.
    pub cudnn: String,
}

impl GpuFacts {
    /// A GPU of which nothing is known.
    pub fn unknown() -> Self {
        Self {
            index: None,
            pci: None,
            product: None,
            uuid: None,
            profiles: Vec::new(),
            kernel_driver: None,
            asleep: false,
            access: Access::NotAsked,
            compute_capability: None,
            memory: None,
            processes: None,
            display: Display::default(),
            running: Running::default(),
            link: Link::default(),
            modes: Modes::default(),
        }
    }

    /// How it is called in a sentence: `GPU 0`, or its place on the bus.
    pub fn label(&self) -> String {
        match (self.index, &self.pci) {
            (Some(index), _) => format!("GPU {index}"),
            (None, Some(pci)) => format!("the GPU at {pci}"),
            (None, None) => "a GPU".to_owned(),
        }
    }
}

impl Machine {
    /// There is an NVIDIA GPU, whatever state it is in.
    pub fn has_gpu(&self) -> bool {
        !self.gpus.is_empty() || self.system.board.is_some()
    }

    /// The GPUs of which NVML tells.
    pub fn answering(&self) -> impl Iterator<Item = &GpuFacts> {
        self.gpus.iter().filter(|gpu| gpu.access == Access::Answers)
    }
}

impl Slowdown {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::SetClocks => "clocks that somebody set",
            Self::PowerCap => "its power limit",
            Self::Hardware => "hardware slowdown (heat or power)",
            Self::SyncBoost => "the clock of its group",
            Self::SoftwareThermal => "heat (the driver keeps its target temperature)",
            Self::HardwareThermal => "heat (the hardware halves its clocks)",
            Self::PowerBrake => "the power supply",
            Self::DisplayClock => "clocks that a display needs",
        }
    }

    /// Whether it costs speed that the GPU should have.
    pub fn harms(self) -> bool {
        matches!(
            self,
            Self::Hardware | Self::SoftwareThermal | Self::HardwareThermal | Self::PowerBrake
        )
    }
}
