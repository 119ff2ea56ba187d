//! A machine and what stands in the way on it, on one screen.

use super::table::wrap;
use crate::device::Platform;
use crate::doctor::{
    Access, ComputeMode, Diagnosis, GpuFacts, Machine, Problem, Process, Python, Severity, Torch,
};
use crate::units::Bytes;

/// Where the second column begins.
const INDENT: usize = 16;

/// What a person reads, at most 100 columns wide.
pub fn doctor(diagnosis: &Diagnosis) -> String {
    let machine = &diagnosis.machine;
    let mut parts = vec![wrap(&headline(diagnosis), "", "")];
    let of = |title: &str, wanted: &dyn Fn(Severity) -> bool| {
        let found = diagnosis.problems.iter().filter(|problem| wanted(problem.severity));
        let lines: Vec<_> = found.map(problem).collect();
        (!lines.is_empty()).then(|| format!("{title}\n{}", lines.join("\n")))
    };
    parts.extend(of("Problems", &|severity| severity != Severity::Note));
    parts.push(rows("This machine", &system(machine)));
    for gpu in &machine.gpus {
        let title = match (&gpu.product, gpu.index) {
            (Some(product), Some(index)) => format!("GPU {index}: {product}"),
            (Some(product), None) => product.clone(),
            (None, _) => gpu.label(),
        };
        parts.push(rows(&title, &gpu_rows(gpu, machine)));
    }
    parts.extend(of("Notes", &|severity| severity == Severity::Note));
    parts.join("\n\n")
}

fn headline(diagnosis: &Diagnosis) -> String {
    let count =
        |severity| diagnosis.problems.iter().filter(|problem| problem.severity == severity).count();
    let machine = &diagnosis.machine;
    if let Some(first) = diagnosis.problems.iter().find(|it| it.severity != Severity::Note) {
        let what = match first.severity {
            Severity::Prevents => "Training on a GPU of this machine does not work",
            _ => "Training works here, but not as well as it could",
        };
        let more = match count(Severity::Prevents) + count(Severity::Harms) {
            1 => "1 problem".to_owned(),
            many => format!("{many} problems"),
        };
        return format!("{what}: {more}.");
    }
    match (machine.gpus.is_empty(), &machine.driver.nvml) {
        (true, Access::Answers) => {
            "No NVIDIA GPU here. Virtual GPUs can be used, so everything can be planned.".to_owned()
        }
        (true, _) if machine.system.board.is_none() => {
            "No NVIDIA driver and no NVIDIA GPU here. Virtual GPUs can be used, so everything can be \
             planned."
                .to_owned()
        }
        (_, Access::NotAsked) => {
            "The GPU sleeps and was left so. As far as can be seen, nothing stands in the way."
                .to_owned()
        }
        _ => "Nothing stands in the way of training here.".to_owned(),
    }
}

fn problem(problem: &Problem) -> String {
    let mut text = wrap(&problem.message, "  - ", "    ");
    if let Some(remedy) = &problem.remedy {
        text += &format!("\n{}", wrap(remedy, "    > ", "      "));
    }
    text
}

fn rows(title: &str, rows: &[(&str, String)]) -> String {
    let lines = rows.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| {
        wrap(text, &format!("  {name:<width$}", width = INDENT - 2), &" ".repeat(INDENT))
    });
    format!("{title}\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn system(machine: &Machine) -> Vec<(&'static str, String)> {
    let virtual_gpus = match (&machine.virtual_gpus.failure, &machine.virtual_gpus.worker) {
        (Some(_), _) => "cannot be used".to_owned(),
        (None, Some(worker)) => {
            format!(
                "can be used; built-in models run PyTorch {}",
                cuda(&worker.torch, &worker.cuda)
            )
        }
        (None, None) => "can be used; built-in models cannot be trained".to_owned(),
    };
    vec![
        ("system", platform(machine)),
        ("driver", driver(machine)),
        ("PyTorch", pytorch(&machine.python)),
        ("Python", python(&machine.python)),
        ("virtual GPUs", virtual_gpus),
    ]
}

fn platform(machine: &Machine) -> String {
    let system = &machine.system;
    let name = match system.platform {
        Platform::Linux => "Linux",
        Platform::Wsl => "Linux in WSL under Windows",
        Platform::Windows => "Windows",
    };
    let mut text = format!("{name} {}", system.kernel);
    let container = system.container.as_ref().map(|it| format!("container: {it}"));
    for more in system.board.iter().chain(&container) {
        text += &format!(", {more}");
    }
    if let Some(on_battery) = system.on_battery {
        text += if on_battery { ", on battery" } else { ", on mains" };
    }
    text.trim_end().to_owned()
}

fn driver(machine: &Machine) -> String {
    let driver = &machine.driver;
    let version = driver.version.as_ref().or(driver.module.as_ref());
    match (&driver.nvml, version) {
        (Access::Answers, Some(version)) => match &driver.cuda {
            Some(cuda) => format!("{version}, for CUDA up to {cuda}"),
            None => version.clone(),
        },
        (Access::Answers, None) => "answers".to_owned(),
        (Access::NotAsked, Some(version)) => format!("{version}, not asked since the GPU sleeps"),
        (Access::NotAsked, None) => "not asked since the GPU sleeps".to_owned(),
        (Access::Fails { reason, .. }, Some(version)) => format!("{version}: {reason}"),
        (Access::Fails { .. }, None) if !machine.has_gpu() => "none".to_owned(),
        (Access::Fails { reason, .. }, None) => reason.clone(),
    }
}

fn pytorch(python: &Python) -> String {
    let Some(torch) = &python.torch else { return "none to be used".to_owned() };
    let built = match (&torch.cuda, &torch.rocm) {
        (Some(cuda), _) => format!("for CUDA {cuda}"),
        (None, Some(rocm)) => format!("for ROCm {rocm}"),
        (None, None) => "for the CPU alone".to_owned(),
    };
    let mut text = format!("{} {built}", torch.version);
    if let Some(cudnn) = &torch.cudnn {
        text += &format!(", cuDNN {cudnn}");
    }
    if let Some(opened) = &torch.opened {
        text += match (&opened.failure, opened.on_virtual_gpu) {
            (Some(_), _) => "; does not open CUDA",
            (None, true) => "; opens CUDA on a virtual GPU",
            (None, false) => "; opens CUDA",
        };
    }
    if !torch.architectures.is_empty() {
        text += &format!("; kernels for {}", torch.architectures.join(", "));
    }
    text
}

fn python(python: &Python) -> String {
    match &python.version {
        Some(version) => format!("{version} ({})", python.path),
        None => python.path.clone(),
    }
}

fn cuda(torch: &str, cuda: &str) -> String {
    format!("{torch} for CUDA {cuda}")
}

fn gpu_rows(gpu: &GpuFacts, machine: &Machine) -> Vec<(&'static str, String)> {
    let state = match (&gpu.access, gpu.asleep) {
        (_, true) => "asleep".to_owned(),
        (Access::Fails { reason, .. }, _) => reason.clone(),
        (Access::NotAsked, _) => "not asked".to_owned(),
        (Access::Answers, _) => String::new(),
    };
    let profile = match gpu.profiles.as_slice() {
        [] => "none".to_owned(),
        names => names.join(" or "),
    };
    let place = [
        gpu.pci.as_ref().map(|pci| format!("PCI {pci}")),
        gpu.uuid.clone(),
        gpu.kernel_driver.as_ref().filter(|it| *it != "nvidia").map(|it| format!("driven by {it}")),
    ];
    vec![
        ("state", state),
        ("profile", profile),
        ("place", joined(place)),
        ("memory", memory(gpu, machine)),
        ("held by", holders(gpu)),
        ("display", display(gpu)),
        ("can do", abilities(gpu, machine.python.torch.as_ref())),
        ("now", now(gpu)),
        ("slowed by", slowed(gpu)),
        ("PCIe", link(gpu)),
        ("modes", modes(gpu)),
    ]
}

fn memory(gpu: &GpuFacts, machine: &Machine) -> String {
    let Some(memory) = gpu.memory else { return String::new() };
    let opened = machine.python.torch.as_ref().and_then(|torch| torch.opened.as_ref());
    let seen = opened.filter(|it| !it.on_virtual_gpu && machine.answering().count() == 1);
    joined([
        Some(format!("{} on the board", memory.total)),
        Some(format!("{} kept by the driver", memory.reserved)),
        Some(format!("{} held", memory.held)),
        Some(format!("{} free", memory.free)),
        seen.and_then(|it| it.devices.first()).map(|it| format!("PyTorch's total {}", it.total)),
    ])
}

fn holders(gpu: &GpuFacts) -> String {
    let held = gpu.memory.map_or(Bytes::ZERO, |memory| memory.held);
    match &gpu.processes {
        None if gpu.access == Access::Answers => {
            "unknown: processes are not named here (Windows, WSL, containers)".to_owned()
        }
        None => String::new(),
        Some(processes) if processes.is_empty() && held == Bytes::ZERO => "nobody".to_owned(),
        Some(processes) if processes.is_empty() => "nobody that NVML names".to_owned(),
        Some(processes) => {
            let mut lines: Vec<_> = processes.iter().take(6).map(holder).collect();
            if processes.len() > 6 {
                lines.push(format!("{} more", processes.len() - 6));
            }
            lines.join(", ")
        }
    }
}

fn holder(process: &Process) -> String {
    let name = process.name.as_deref().unwrap_or("unknown (another container or user)");
    let held = match process.held {
        Some(held) => format!("{:.0} MiB", held.as_mib()),
        None => "not told how much".to_owned(),
    };
    let kind = if process.computes { "" } else { ", draws" };
    format!("{name} (pid {}{kind}) {held}", process.pid)
}

fn display(gpu: &GpuFacts) -> String {
    match (gpu.display.attached, gpu.display.active) {
        (_, Some(true)) => "a desktop is shown through it".to_owned(),
        (Some(true), _) => "a screen is attached, no desktop uses it".to_owned(),
        (_, Some(false)) => "none".to_owned(),
        _ => String::new(),
    }
}

/// What the hardware has, and for flash attention PyTorch as well.
fn abilities(gpu: &GpuFacts, torch: Option<&Torch>) -> String {
    let Some(capability) = gpu.compute_capability else { return String::new() };
    let said = |name: &str, has: bool| if has { name.to_owned() } else { format!("no {name}") };
    // Its kernels begin with Ampere, in PyTorch's attention as in the package.
    let hardware = capability.major >= 8;
    let flash = match torch {
        Some(torch) => {
            let built = torch.flash_attention != Some(false);
            let package = torch.flash_attn.as_ref().filter(|_| hardware);
            let package = package.map(|version| format!(" (and flash-attn {version})"));
            said("flash attention", hardware && built) + &package.unwrap_or_default()
        }
        None => said("flash attention", hardware),
    };
    joined([
        Some(format!("compute capability {capability}")),
        Some(said("bf16", capability.has_bf16())),
        Some(said("tf32", capability.has_tf32())),
        Some(flash),
    ])
}

fn now(gpu: &GpuFacts) -> String {
    let running = &gpu.running;
    let of = |now: Option<String>, most: Option<String>, unit: &str| match (now, most) {
        (Some(now), Some(most)) => Some(format!("{now} of {most} {unit}")),
        (Some(now), None) => Some(format!("{now} {unit}")),
        (None, Some(most)) => Some(format!("up to {most} {unit}")),
        (None, None) => None,
    };
    let text = |value: Option<u32>| value.map(|value| value.to_string());
    let watts = |value: Option<u32>| value.map(|value| (value / 1000).to_string());
    joined([
        of(text(running.clock), text(running.highest_clock), "MHz"),
        running.performance_state.map(|state| format!("P{state}")),
        running.utilization.map(|percent| format!("{percent} % busy")),
        running.temperature.map(|degrees| format!("{degrees} °C")),
        running.slowdown_temperature.map(|degrees| format!("slows down at {degrees} °C")),
        of(watts(running.power), watts(running.power_limit), "W"),
        running.on_battery.map(|on| if on { "on battery" } else { "on mains" }.to_owned()),
    ])
}

fn slowed(gpu: &GpuFacts) -> String {
    match gpu.running.slowed_by.as_deref() {
        None => String::new(),
        Some([]) => "nothing".to_owned(),
        Some(reasons) => reasons.iter().map(|it| it.words()).collect::<Vec<_>>().join(", "),
    }
}

fn link(gpu: &GpuFacts) -> String {
    let link = &gpu.link;
    let words = |generation: Option<u32>, width: Option<u32>| match (generation, width) {
        (Some(generation), Some(width)) => Some(format!("generation {generation} x{width}")),
        (Some(generation), None) => Some(format!("generation {generation}")),
        (None, Some(width)) => Some(format!("x{width}")),
        (None, None) => None,
    };
    let now = words(link.generation, link.width);
    let most = words(link.highest_generation, link.highest_width);
    match (now, most) {
        (Some(now), Some(most)) => {
            format!("{now} now (the generation falls when idle), {most} at most")
        }
        (Some(now), None) => format!("{now} now"),
        (None, Some(most)) => format!("{most} at most"),
        (None, None) => String::new(),
    }
}

fn modes(gpu: &GpuFacts) -> String {
    let modes = &gpu.modes;
    let switch = |name: &str, on: Option<bool>| {
        on.map(|on| format!("{name} {}", if on { "on" } else { "off" }))
    };
    joined([
        switch("ECC", modes.ecc),
        switch("MIG", modes.mig),
        switch("persistence", modes.persistence),
        modes.compute.map(|mode| match mode {
            ComputeMode::Default => "open to all processes".to_owned(),
            ComputeMode::ExclusiveProcess => "for one process at a time".to_owned(),
            ComputeMode::Prohibited => "closed to all processes".to_owned(),
        }),
    ])
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::fixtures::{bare, laptop};

    fn text(machine: Machine) -> String {
        doctor(&Diagnosis::of(machine, false))
    }

    #[test]
    fn a_laptop_is_told_on_one_screen() {
        insta::assert_snapshot!(text(laptop()));
    }

    #[test]
    fn problems_come_before_facts_and_notes_after_them() {
        let mut machine = laptop();
        machine.system.on_battery = Some(true);
        machine.system.mps = true;
        let text = text(machine);
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(place("Problems\n  - the machine runs on its battery") < place("This machine"));
        assert!(place("GPU 0: ") < place("Notes\n  - CUDA's multi-process service"));
        assert!(text.starts_with("Training works here, but not as well as it could: 1 problem."));
    }

    #[test]
    fn a_machine_without_a_gpu_is_told_plainly_that_it_can_plan() {
        let text = text(bare());
        let plainly = "No NVIDIA driver and no NVIDIA GPU here. Virtual GPUs can be used, so \
                       everything can be planned.\n";
        assert!(text.starts_with(plainly), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_hundred_columns() {
        let mut machine = laptop();
        machine.gpus[0].processes = Some(
            (0..9)
                .map(|pid| Process {
                    pid: 100_000 + pid,
                    name: Some("a-program-of-some-length".to_owned()),
                    held: Some(Bytes::gib(1)),
                    computes: true,
                })
                .collect(),
        );
        for machine in [machine, bare()] {
            for line in text(machine).lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }
}
