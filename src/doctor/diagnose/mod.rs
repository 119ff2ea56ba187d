//! From facts to what stands in the way.

mod around;
mod driver;
mod gpus;
mod torch;

use schemars::JsonSchema;
use serde::Serialize;

use super::machine::Machine;

/// Something to know or to mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Which one; stable.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// NVML's index of the GPU that it is about, where it is about one.
    pub gpu: Option<u32>,
    /// What is so, in one sentence.
    pub message: String,
    /// What to do, in one sentence; null where there is nothing to do.
    pub remedy: Option<String>,
}

/// How much a problem matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Training on a GPU of this machine does not work.
    Prevents,
    /// It works, with less memory, speed or safety than it should.
    Harms,
    /// Good to know.
    Note,
}

/// Which problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// There is no NVIDIA GPU to be seen.
    NoGpu,
    /// A GPU is there, and no driver for it.
    DriverMissing,
    /// The driver is not loaded.
    DriverNotLoaded,
    /// Kernel module and library of the driver are of different versions.
    VersionMismatch,
    /// A container that the GPU was not handed to, or that lost it.
    ContainerWithoutGpu,
    /// A Linux driver inside WSL.
    LinuxDriverInWsl,
    /// The driver's NVML fails in another way.
    DriverFails,
    /// A GPU is powered down and was left so.
    Asleep,
    /// A board whose GPU shares the CPU's memory.
    SharedMemoryBoard,
    /// Memory that runs over goes to the host, slowly.
    Spill,
    /// The machine runs on its battery.
    OnBattery,
    /// `CUDA_VISIBLE_DEVICES` hides GPUs.
    VisibleDevices,
    /// The multi-process service runs.
    Mps,
    /// One GPU does not answer.
    GpuFails,
    /// It is a virtual one.
    VirtualGpu,
    /// Clocks are held down.
    SlowedDown,
    /// The power limit is below what the card comes with.
    PowerLimit,
    /// Other programs hold memory.
    MemoryHeld,
    /// Divided into instances.
    Mig,
    /// Set so that nobody, or nobody else, may compute.
    ComputeMode,
    /// Memory errors.
    MemoryErrors,
    /// Fewer PCIe lanes than there could be.
    NarrowLink,
    /// No bf16 in hardware.
    NoBf16,
    /// No profile describes it.
    NoProfile,
    /// The Python that vramfit runs is not there.
    PythonMissing,
    /// It has no PyTorch.
    TorchMissing,
    /// Its PyTorch cannot be imported.
    TorchBroken,
    /// Its PyTorch is built for another kind of device.
    TorchWithoutCuda,
    /// The driver is older than the CUDA that PyTorch was built for.
    DriverTooOld,
    /// PyTorch has no kernels for the GPU.
    NoKernels,
    /// PyTorch cannot open CUDA.
    CudaFails,
    /// Built-in models are measured with another PyTorch.
    AnotherTorch,
    /// Virtual GPUs do not work here.
    NoVirtualGpus,
    /// Built-in models cannot be trained.
    WorkerFails,
}

/// What stands in the way on this machine, the worst first. A machine without an NVIDIA GPU has no
/// problem, since plans need none, unless `needs_gpu`.
pub fn diagnose(machine: &Machine, needs_gpu: bool) -> Vec<Problem> {
    let mut found = driver::problems(machine, needs_gpu);
    found.extend(around::problems(machine));
    found.extend(machine.gpus.iter().flat_map(|gpu| gpus::problems(gpu, machine)));
    found.extend(torch::problems(machine));
    found.sort_by_key(|problem| problem.severity);
    found
}

impl Problem {
    fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, severity, gpu: None, message: message.into(), remedy: None }
    }

    fn prevents(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Prevents, message)
    }

    fn harms(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Harms, message)
    }

    fn note(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, message)
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn of_gpu(self, gpu: Option<u32>) -> Self {
        Self { gpu, ..self }
    }
}

#[cfg(test)]
pub(crate) mod tests;
