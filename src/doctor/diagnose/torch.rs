//! Whether PyTorch fits the driver and the GPUs, and what plans without a GPU need.

use super::{Code, Problem, Severity};
use crate::doctor::machine::{Access, GpuFacts, Machine, PythonFailure, Torch};
use crate::profile::gpu::ComputeCapability;

/// First driver branch for each major version of CUDA: NVIDIA's "CUDA Compatibility", chapter "Minor
/// Version Compatibility", table 1
/// (<https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html>).
const FIRST_DRIVERS: [(u32, u32); 3] = [(11, 450), (12, 525), (13, 580)];
/// Where PyTorch's builds are found by their CUDA.
const INDEX: &str = "https://download.pytorch.org/whl";

pub(super) fn problems(machine: &Machine) -> Vec<Problem> {
    let mut found: Vec<_> = machine.python.failure.iter().map(|it| python(machine, it)).collect();
    if let Some(torch) = &machine.python.torch {
        found.extend(of_torch(machine, torch));
    }
    found.extend(virtual_gpus(machine));
    found
}

/// What a PyTorch that cannot train costs: everything where there is a GPU; else scripts and functions
/// cannot be planned for, which built-in models can.
fn weight(machine: &Machine) -> Severity {
    match machine.has_gpu() {
        true => Severity::Prevents,
        false => Severity::Note,
    }
}

fn python(machine: &Machine, failure: &PythonFailure) -> Problem {
    let path = &machine.python.path;
    let name_it = "name the Python that you train with: `VRAMFIT_PYTHON=…/bin/python`, or activate its \
                   virtual environment";
    let (code, message, remedy) = match failure {
        PythonFailure::Missing => {
            (Code::PythonMissing, format!("there is no Python at `{path}`"), name_it.to_owned())
        }
        PythonFailure::NoTorch => (
            Code::TorchMissing,
            format!("the Python that vramfit runs, `{path}`, has no PyTorch"),
            format!("{name_it}; or `pip install torch`"),
        ),
        PythonFailure::Broken { reason } => (
            Code::TorchBroken,
            format!("PyTorch of `{path}` cannot be imported: {reason}"),
            format!("`{path} -c 'import torch'` shows all of it; install it anew"),
        ),
        PythonFailure::Hung { seconds } => (
            Code::TorchBroken,
            format!("`{path}` did not import PyTorch within {seconds} s"),
            format!("try `{path} -c 'import torch'`; a slow or full disk is the usual cause"),
        ),
    };
    Problem::new(code, weight(machine), message).remedy(remedy)
}

fn of_torch(machine: &Machine, torch: &Torch) -> Vec<Problem> {
    let Some(cuda) = &torch.cuda else { return vec![without_cuda(machine, torch)] };
    let mut found: Vec<_> = too_old(machine, torch, cuda).into_iter().collect();
    let all_known = found.is_empty();
    let kernels: Vec<_> =
        machine.answering().filter_map(|gpu| without_kernels(gpu, torch, cuda)).collect();
    let explained = !all_known || !kernels.is_empty() || hidden(machine);
    found.extend(kernels);
    found.extend(fails(machine, torch).filter(|_| !explained));
    found.extend(another(machine, torch));
    found
}

/// `CUDA_VISIBLE_DEVICES` explains it already.
fn hidden(machine: &Machine) -> bool {
    machine
        .system
        .visible_devices
        .as_deref()
        .is_some_and(|it| it.is_empty() || it.starts_with("-1"))
}

fn without_cuda(machine: &Machine, torch: &Torch) -> Problem {
    let version = &torch.version;
    let message = match &torch.rocm {
        Some(rocm) => format!("PyTorch {version} is built for AMD's ROCm {rocm}, not for CUDA"),
        None => format!("PyTorch {version} is built for the CPU alone"),
    };
    let cuda = machine.driver.cuda.as_deref().and_then(major).unwrap_or(13);
    let build = if cuda >= 13 { "cu130" } else { "cu126" };
    let remedy = format!(
        "`pip install --force-reinstall torch --index-url {INDEX}/{build}` gets one with CUDA"
    );
    Problem::new(Code::TorchWithoutCuda, weight(machine), message).remedy(remedy)
}

/// The driver must be of the branch that came with CUDA's major version, or later.
fn too_old(machine: &Machine, torch: &Torch, cuda: &str) -> Option<Problem> {
    let needed = FIRST_DRIVERS.iter().find(|it| Some(it.0) == major(cuda))?.1;
    let version = machine.driver.version.as_ref().or(machine.driver.module.as_ref())?;
    let branch = major(version)?;
    let known = FIRST_DRIVERS.iter().rev().find(|it| branch >= it.1);
    let remedy = match known {
        Some((12, _)) => format!(
            "update the driver to {needed} or later, or `pip install --force-reinstall torch \
             --index-url {INDEX}/cu126`"
        ),
        _ => format!("update the driver to {needed} or later"),
    };
    (branch < needed).then(|| {
        let message = format!(
            "driver {version} is too old for PyTorch {}, which needs {needed} or later for CUDA {cuda}",
            torch.version
        );
        Problem::prevents(Code::DriverTooOld, message).remedy(remedy)
    })
}

fn without_kernels(gpu: &GpuFacts, torch: &Torch, cuda: &str) -> Option<Problem> {
    let capability = gpu.compute_capability?;
    let kernels = Kernels::of(&torch.architectures, capability);
    let build = format!("PyTorch {} for CUDA {cuda}", torch.version);
    match kernels {
        Kernels::Native | Kernels::Unknown => None,
        Kernels::Compiled => Some(
            Problem::note(
                Code::NoKernels,
                format!(
                    "{build} has no kernels for {} (compute capability {capability}) and compiles them \
                     at the first start, which takes minutes",
                    gpu.label()
                ),
            )
            .of_gpu(gpu.index)
            .remedy("a later PyTorch has them"),
        ),
        Kernels::None => {
            // CUDA 13 has left out what is older than Turing; 12.6 has it, and nothing from Blackwell.
            let remedy = match (capability.major, capability.minor) {
                (0..=6, _) | (7, 0..=4) => {
                    format!("an older build has them: `pip install torch --index-url {INDEX}/cu126`")
                }
                _ => format!("a newer one has them: `pip install -U torch --index-url {INDEX}/cu130`"),
            };
            let message = format!(
                "{build} has no kernels for {} (compute capability {capability}); it has {}",
                gpu.label(),
                torch.architectures.join(", ")
            );
            let problem = Problem::prevents(Code::NoKernels, message);
            Some(problem.of_gpu(gpu.index).remedy(remedy))
        }
    }
}

/// How a build of PyTorch serves a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernels {
    /// By kernels for cards of its generation up to it.
    Native,
    /// By kernels that the driver compiles from intermediate code.
    Compiled,
    /// Not at all.
    None,
    /// The build does not tell.
    Unknown,
}

impl Kernels {
    /// CUDA's rules: machine code runs on the same major version from its minor version on; code for
    /// `90a` on that one alone, for `100f` on its family; intermediate code on everything later. Chips
    /// that sit beside a CPU (7.2, 8.7) take no others' machine code.
    fn of(architectures: &[String], capability: ComputeCapability) -> Self {
        if architectures.is_empty() {
            return Self::Unknown;
        }
        let embedded = matches!((capability.major, capability.minor), (7, 2) | (8, 7));
        let native = |architecture: &String| {
            let Some(code) = architecture.strip_prefix("sm_") else { return false };
            let Some(known) = parsed(code) else { return false };
            match code.ends_with('a') || embedded {
                true => known == capability,
                false => known.major == capability.major && known.minor <= capability.minor,
            }
        };
        let compiled = |architecture: &String| {
            let code = architecture.strip_prefix("compute_");
            code.filter(|code| !code.ends_with(['a', 'f']))
                .and_then(parsed)
                .is_some_and(|it| it <= capability)
        };
        match (architectures.iter().any(native), architectures.iter().any(compiled)) {
            (true, _) => Self::Native,
            (false, true) => Self::Compiled,
            (false, false) => Self::None,
        }
    }
}

/// `86`, `90a`, `100f`, `120` as a compute capability.
fn parsed(code: &str) -> Option<ComputeCapability> {
    let number: u32 = code.trim_end_matches(['a', 'f']).parse().ok()?;
    Some(ComputeCapability { major: number / 10, minor: number % 10 })
}

/// PyTorch's own words where nothing else explains it.
fn fails(machine: &Machine, torch: &Torch) -> impl Iterator<Item = Problem> {
    let opened = torch.opened.as_ref();
    let reason = opened.and_then(|it| it.failure.as_deref());
    let on_virtual = opened.is_some_and(|it| it.on_virtual_gpu);
    let problem = reason.map(|reason| match on_virtual {
        true => Problem::note(
            Code::CudaFails,
            format!("PyTorch {} does not open CUDA on a virtual GPU: {reason}", torch.version),
        )
        .remedy("docs/versions.md names the versions of PyTorch that are known to work"),
        false => Problem::prevents(
            Code::CudaFails,
            format!("PyTorch {} does not open CUDA: {reason}", torch.version),
        )
        .remedy("`sudo modprobe nvidia_uvm`, or reboot; after a sleep of the machine too"),
    });
    let none = opened.is_some_and(|it| {
        it.failure.is_none() && it.devices.is_empty() && machine.driver.nvml == Access::Answers
    });
    let unseen = none.then(|| {
        Problem::prevents(Code::CudaFails, "PyTorch sees none of the GPUs that NVML sees")
            .remedy("with MIG, make an instance; see `CUDA_VISIBLE_DEVICES`")
    });
    problem.into_iter().chain(unseen)
}

fn another(machine: &Machine, torch: &Torch) -> Option<Problem> {
    let worker = machine.virtual_gpus.worker.as_ref()?;
    let own = torch.version.split('+').next().unwrap_or_default();
    let workers = worker.torch.split('+').next().unwrap_or_default();
    let same_cuda = torch.cuda.as_deref().is_none_or(|cuda| cuda == worker.cuda);
    (own != workers || !same_cuda).then(|| {
        let message = format!(
            "built-in models are measured with PyTorch {workers} for CUDA {}; your own programs run {}",
            worker.cuda, torch.version
        );
        Problem::note(Code::AnotherTorch, message)
            .remedy("for numbers of your version plan with `--workload` or `-- COMMAND`")
    })
}

fn virtual_gpus(machine: &Machine) -> Vec<Problem> {
    let found = &machine.virtual_gpus;
    if let Some(reason) = &found.failure {
        let problem = Problem::new(
            Code::NoVirtualGpus,
            if machine.has_gpu() { Severity::Note } else { Severity::Prevents },
            format!("virtual GPUs cannot be used: {reason}"),
        );
        return vec![Problem { remedy: found.remedy.clone(), ..problem }];
    }
    let Some(reason) = &found.worker_failure else { return Vec::new() };
    let usable = machine.python.torch.as_ref().is_some_and(|torch| torch.cuda.is_some());
    let severity = if usable { Severity::Note } else { Severity::Prevents };
    let message = format!("built-in models cannot be trained: {reason}");
    vec![Problem::new(Code::WorkerFails, severity, message).remedy("`make` builds the worker")]
}

/// The number before the first dot.
fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_serve_cards_by_cudas_rules() {
        let of = |architectures: &[&str], major, minor| {
            let architectures: Vec<_> = architectures.iter().map(|it| (*it).to_owned()).collect();
            Kernels::of(&architectures, ComputeCapability { major, minor })
        };
        let recent = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"];
        assert_eq!(of(&recent, 8, 6), Kernels::Native);
        assert_eq!(of(&recent, 8, 9), Kernels::Native, "8.6's run on 8.9");
        assert_eq!(of(&recent, 6, 1), Kernels::None);
        assert_eq!(of(&recent, 7, 0), Kernels::None, "7.5's do not run on 7.0");
        assert_eq!(of(&recent, 12, 1), Kernels::Native);
        assert_eq!(of(&recent, 13, 0), Kernels::Compiled);
        assert_eq!(of(&["sm_80", "sm_90a", "compute_90a"], 10, 0), Kernels::None);
        assert_eq!(of(&["sm_80", "sm_86"], 8, 7), Kernels::None, "Orin");
        assert_eq!(of(&["sm_100f"], 10, 3), Kernels::Native);
        assert_eq!(of(&[], 8, 6), Kernels::Unknown);
    }
}
