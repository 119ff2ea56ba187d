//! Whether the driver is there and answers.

use super::{Code, Problem, Severity};
use crate::device::{NvmlFault, Platform};
use crate::doctor::machine::{Access, Driver, GpuFacts, Machine, System};

pub(super) fn problems(machine: &Machine, needs_gpu: bool) -> Vec<Problem> {
    let Machine { system, driver, .. } = machine;
    if system.linux_driver_in_wsl {
        let message = "a Linux driver is installed inside WSL, where it hides the one of Windows";
        return vec![Problem::prevents(Code::LinuxDriverInWsl, message).remedy(
            "remove it (`sudo apt purge 'libnvidia-compute-*' 'nvidia-driver-*'`) and run \
             `wsl --shutdown` in Windows; WSL uses the driver of Windows",
        )];
    }
    match &driver.nvml {
        Access::NotAsked => asleep(machine),
        Access::Answers if machine.gpus.is_empty() => vec![no_gpu(machine, needs_gpu)],
        Access::Answers => unclaimed(machine),
        Access::Fails { fault, reason, remedy } => match fault {
            NvmlFault::VersionMismatch => vec![mismatch(driver)],
            _ if in_container(machine, *fault) => vec![container(system, *fault)],
            NvmlFault::NoLibrary | NvmlFault::NotLoaded if !has_card(machine) => {
                vec![no_gpu(machine, needs_gpu)]
            }
            NvmlFault::NoLibrary => vec![missing(machine)],
            NvmlFault::NotLoaded => vec![not_loaded(machine)],
            _ => {
                let problem = Problem::prevents(
                    Code::DriverFails,
                    format!("the driver is there and does not answer: {reason}"),
                );
                vec![Problem { remedy: remedy.clone(), ..problem }]
            }
        },
    }
}

/// A card is there for a driver to drive, as far as can be seen without it.
fn has_card(machine: &Machine) -> bool {
    !machine.gpus.is_empty() || machine.driver.module.is_some() || machine.system.board.is_some()
}

fn asleep(machine: &Machine) -> Vec<Problem> {
    let sleeping = machine.gpus.iter().filter(|gpu| gpu.asleep).map(name).collect::<Vec<_>>();
    let message = format!(
        "{} {} asleep and {} left so; what only an awake GPU tells is not known",
        sleeping.join(", "),
        if sleeping.len() == 1 { "is" } else { "are" },
        if sleeping.len() == 1 { "was" } else { "were" },
    );
    let remedy = "`vramfit doctor --wake` wakes it for some seconds; so does any training";
    vec![Problem::note(Code::Asleep, message).remedy(remedy)]
}

/// The product with its place, as far as they are known.
fn name(gpu: &GpuFacts) -> String {
    match &gpu.product {
        Some(product) => format!("{product} ({})", gpu.label()),
        None => gpu.label(),
    }
}

fn no_gpu(machine: &Machine, needs_gpu: bool) -> Problem {
    let severity = if needs_gpu { Severity::Prevents } else { Severity::Note };
    let what = match (&machine.driver.nvml, machine.system.platform) {
        (Access::Answers, _) => "NVIDIA's driver is there and finds no GPU".to_owned(),
        (_, Platform::Wsl) => "WSL has no NVIDIA driver and no NVIDIA GPU".to_owned(),
        _ => "there is no NVIDIA driver and no NVIDIA GPU in this machine".to_owned(),
    };
    let (message, remedy) = match &machine.virtual_gpus.failure {
        None => (
            format!("{what}; virtual GPUs can be used"),
            "plan for a card that you name: `vramfit plan --gpu rtx-4060-laptop …`; `vramfit gpus` \
             lists them"
                .to_owned(),
        ),
        Some(_) => (what, "virtual GPUs need none, once they work".to_owned()),
    };
    let remedy = match (&machine.driver.nvml, machine.system.platform) {
        (Access::Fails { .. }, Platform::Wsl) => format!(
            "if Windows has an NVIDIA GPU, update its driver in Windows and run `wsl --update`; \
             else {remedy}"
        ),
        _ => remedy,
    };
    Problem::new(Code::NoGpu, severity, message).remedy(remedy)
}

/// Cards that the bus has and NVML does not know.
fn unclaimed(machine: &Machine) -> Vec<Problem> {
    let unknown = machine.gpus.iter().filter(|gpu| gpu.index.is_none());
    unknown.map(|gpu| held_otherwise(gpu).unwrap_or_else(|| lost(gpu))).collect()
}

fn lost(gpu: &GpuFacts) -> Problem {
    let message = format!("the driver does not know of {}", name(gpu));
    Problem::prevents(Code::GpuFails, message)
        .remedy("`sudo dmesg | grep -i nvrm` says why; reboot, or update the driver")
}

/// A card that another kernel driver holds.
fn held_otherwise(gpu: &GpuFacts) -> Option<Problem> {
    let driver = gpu.kernel_driver.as_deref()?;
    let (what, remedy) = match driver {
        "nvidia" => return None,
        "vfio-pci" => (
            "is set aside for virtual machines",
            "give it back to the host (it is bound to `vfio-pci`), or train inside the virtual \
             machine",
        ),
        "nouveau" => (
            "is driven by nouveau, which has no CUDA",
            "install NVIDIA's driver, which takes nouveau's place, and reboot",
        ),
        _ => ("is driven by a driver without CUDA", "install NVIDIA's driver and reboot"),
    };
    let message = format!("{} {what}", name(gpu));
    Some(Problem::prevents(Code::DriverMissing, message).remedy(remedy))
}

fn missing(machine: &Machine) -> Problem {
    if let Some(problem) = machine.gpus.iter().find_map(held_otherwise) {
        return problem;
    }
    let cards = machine.gpus.iter().map(name).collect::<Vec<_>>().join(", ");
    let message = match cards.as_str() {
        "" => "the driver's kernel module is loaded, its library is not installed".to_owned(),
        cards => format!("{cards}: no NVIDIA driver is installed"),
    };
    Problem::prevents(Code::DriverMissing, message).remedy(
        "install NVIDIA's driver (Ubuntu: `sudo ubuntu-drivers install`) and reboot; until then \
         plan for its virtual twin with `--gpu NAME`",
    )
}

fn not_loaded(machine: &Machine) -> Problem {
    if let Some(problem) = machine.gpus.iter().find_map(held_otherwise) {
        return problem;
    }
    let message = "NVIDIA's driver is installed and not loaded";
    Problem::prevents(Code::DriverNotLoaded, message).remedy(
        "`sudo modprobe nvidia`; if that fails, the module was not built for this kernel, or Secure \
         Boot refuses it: `sudo dmesg | grep -i nvidia` says which",
    )
}

fn mismatch(driver: &Driver) -> Problem {
    let version = |it: &Option<String>| it.clone().unwrap_or_else(|| "another version".to_owned());
    let message = format!(
        "the driver was updated while its old module is loaded: module {}, library {}",
        version(&driver.module),
        version(&driver.library)
    );
    Problem::prevents(Code::VersionMismatch, message)
        .remedy("reboot; in a container, restart it so that it gets the library of the host")
}

/// A container on a machine with a GPU, without access to it.
fn in_container(machine: &Machine, fault: NvmlFault) -> bool {
    let kept_away = match fault {
        NvmlFault::NoLibrary | NvmlFault::NotLoaded => has_card(machine),
        NvmlFault::Blocked | NvmlFault::Unknown | NvmlFault::NoPermission => true,
        _ => false,
    };
    machine.system.container.is_some() && kept_away
}

fn container(system: &System, fault: NvmlFault) -> Problem {
    let kind = system.container.as_deref().unwrap_or("container");
    let (what, remedy) = match fault {
        NvmlFault::Unknown if system.device_files => (
            "has lost its access to the GPU",
            "restart it: `systemctl daemon-reload` on the host takes the access away".to_owned(),
        ),
        _ => ("was not given the GPU", with_gpu(kind)),
    };
    Problem::prevents(Code::ContainerWithoutGpu, format!("this container ({kind}) {what}"))
        .remedy(remedy)
}

/// How such a container is started with a GPU.
fn with_gpu(kind: &str) -> String {
    match kind {
        "docker" => "start it with `docker run --gpus all …` (NVIDIA's Container Toolkit)",
        "podman" => "start it with `podman run --device nvidia.com/gpu=all …`",
        "apptainer" | "singularity" => "start it with `--nv`",
        "kubernetes" => "ask for `nvidia.com/gpu: 1` in the pod's limits",
        "lxc" => "give it the GPU's devices (`lxc config device add NAME gpu gpu`)",
        _ => "start it with the GPU's devices (`/dev/nvidia*`) and the driver's libraries",
    }
    .to_owned()
}
