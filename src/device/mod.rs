//! A GPU to plan for, real or virtual: its budget, the environment of a child that runs on it, and
//! what NVML sees of it.

mod budget;
mod descent;
mod nvml;
mod platform;
mod python;
mod real_gpu;
mod run_reports;
mod sampler;
mod snapshots;
mod twin;
mod virtual_gpu;

use std::ffi::OsString;
use std::sync::Arc;

use nvml_wrapper::Nvml;

use crate::measurement::EvidenceKind;
use crate::profile::gpu::ComputeCapability;
use crate::profile::speed::has_tensor_cores;
use crate::profile::uncertainty::Uncertainty;

pub use budget::{Budget, default_margin};
pub use descent::{descendants, descends_from, started_with};
pub use nvml::{NvmlFault, nvml_words, open_nvml};
pub use platform::Platform;
pub use python::{PythonSetup, lay_out_python, python_environment, python_packages};
pub(crate) use real_gpu::process_bytes;
pub use real_gpu::{BoardMemory, RealGpu, RealGpus, board_memory};
pub use run_reports::{RunReports, read_run_reports};
pub use sampler::{Sampler, Sight, Whose};
pub use snapshots::{ProcessSnapshot, SnapshotFile, Snapshots};
pub use twin::twin_profile;
pub(crate) use virtual_gpu::beside_executable;
pub use virtual_gpu::{Setup, VIRTUAL_SUFFIX, VirtualGpu, budget, remove_folders};

/// A GPU to plan for.
pub enum Gpu {
    /// A card of this machine.
    Real(RealGpu),
    /// A card that is only described.
    Virtual(Box<VirtualGpu>),
}

impl Gpu {
    /// Name on the command line: the profile's, or the UUID of a real card.
    pub fn name(&self) -> &str {
        match self {
            Self::Real(gpu) => &gpu.uuid,
            Self::Virtual(gpu) => &gpu.profile().name,
        }
    }

    /// Product name as NVML prints it.
    pub fn product(&self) -> &str {
        match self {
            Self::Real(gpu) => &gpu.product,
            Self::Virtual(gpu) => gpu.product(),
        }
    }

    /// `GPU-…`.
    pub fn uuid(&self) -> &str {
        match self {
            Self::Real(gpu) => &gpu.uuid,
            Self::Virtual(gpu) => gpu.uuid(),
        }
    }

    /// Whether kernels run on it. A virtual GPU says so in its name, so that one which stands in
    /// for a real card (`vramfit run -- vramfit plan`) is not taken for one in a plan.
    pub fn kind(&self) -> EvidenceKind {
        match self {
            Self::Real(gpu) if !gpu.product.ends_with(VIRTUAL_SUFFIX) => EvidenceKind::Real,
            Self::Real(_) | Self::Virtual(_) => EvidenceKind::Virtual,
        }
    }

    /// Matrix products run faster in 16 bits.
    pub fn has_tensor_cores(&self) -> bool {
        has_tensor_cores(self.product(), self.compute_capability())
    }

    /// What modelled times of it leave open.
    pub fn uncertainty(&self) -> Uncertainty {
        match self {
            Self::Real(_) => Uncertainty::uncalibrated(),
            Self::Virtual(gpu) => gpu.profile().uncertainty(),
        }
    }

    /// CUDA compute capability.
    pub fn compute_capability(&self) -> ComputeCapability {
        match self {
            Self::Real(gpu) => gpu.compute_capability,
            Self::Virtual(gpu) => gpu.profile().compute_capability.value,
        }
    }

    /// Driver version as NVML prints it.
    pub fn driver(&self) -> &str {
        match self {
            Self::Real(gpu) => &gpu.driver,
            Self::Virtual(_) => virtual_gpu::DRIVER_VERSION,
        }
    }

    /// What may be used of it.
    pub fn budget(&self) -> Budget {
        match self {
            Self::Real(gpu) => gpu.budget,
            Self::Virtual(gpu) => gpu.budget(),
        }
    }

    /// Variables that put a child process on this GPU and no other.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Real(gpu) => gpu.environment(),
            Self::Virtual(gpu) => gpu.environment(),
        }
    }

    /// How many of its kind there are in the machine that a child sees.
    pub fn count(&self) -> u32 {
        match self {
            Self::Real(_) => 1,
            Self::Virtual(gpu) => u32::try_from(gpu.count()).unwrap_or(1),
        }
    }

    /// The NVML that knows this GPU.
    pub fn nvml(&self) -> &Arc<Nvml> {
        match self {
            Self::Real(gpu) => &gpu.nvml,
            Self::Virtual(gpu) => gpu.nvml(),
        }
    }
}
