//! One GPU at a time.

use super::{Code, Problem};
use crate::device::{VIRTUAL_SUFFIX, default_margin};
use crate::doctor::machine::{Access, ComputeMode, GpuFacts, Machine, Process, Slowdown};
use crate::units::Bytes;

type Look = fn(&GpuFacts, &Machine) -> Option<Problem>;

pub(super) fn problems(gpu: &GpuFacts, machine: &Machine) -> Vec<Problem> {
    match &gpu.access {
        Access::NotAsked => Vec::new(),
        Access::Fails { reason, remedy, .. } => {
            let message = format!("{} does not answer: {reason}", gpu.label());
            let problem = Problem::prevents(Code::GpuFails, message).of_gpu(gpu.index);
            vec![Problem { remedy: remedy.clone(), ..problem }]
        }
        Access::Answers => {
            let looks: [Look; 10] = [
                is_virtual,
                slowed,
                power_limit,
                memory_held,
                mig,
                compute_mode,
                memory_errors,
                narrow_link,
                no_bf16,
                no_profile,
            ];
            let found = looks.into_iter().filter_map(|look| look(gpu, machine));
            found.map(|problem| problem.of_gpu(gpu.index)).collect()
        }
    }
}

impl GpuFacts {
    /// A virtual GPU says so in its name.
    pub(super) fn is_virtual(&self) -> bool {
        self.product.as_deref().is_some_and(|it| it.ends_with(VIRTUAL_SUFFIX))
    }

    /// What programs hold, beyond what a plan's margin would bear.
    fn is_held(&self) -> bool {
        self.memory.is_some_and(|memory| {
            memory.held > default_margin(memory.total, self.display.active.unwrap_or(true))
        })
    }
}

fn is_virtual(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let message = format!("{} is a virtual GPU: nothing is computed on it", gpu.label());
    gpu.is_virtual().then(|| Problem::note(Code::VirtualGpu, message))
}

fn slowed(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let reasons = gpu.running.slowed_by.as_deref()?;
    let label = gpu.label();
    let words = |wanted: fn(Slowdown) -> bool| {
        let words = reasons.iter().copied().filter(|it| wanted(*it)).map(Slowdown::words);
        words.collect::<Vec<_>>().join(", ")
    };
    let harmful = words(Slowdown::harms);
    let clocks = match (gpu.running.clock, gpu.running.highest_clock) {
        (Some(now), Some(most)) => format!(": {now} of {most} MHz"),
        _ => String::new(),
    };
    let heat = gpu.running.temperature.map_or_else(String::new, |it| format!(" at {it} °C"));
    if !harmful.is_empty() {
        let remedy = match reasons.contains(&Slowdown::PowerBrake) {
            true => "plug in the laptop's own power supply; on a desktop check the power cables",
            false => {
                "let air in (raise a laptop, clean its fans), choose its performance mode, or limit \
                 the power: `sudo nvidia-smi -pl WATTS`"
            }
        };
        let message = format!("{label} is slowed down by {harmful}{clocks}{heat}");
        return Some(Problem::harms(Code::SlowedDown, message).remedy(remedy));
    }
    if reasons.contains(&Slowdown::SetClocks) {
        let message = format!("{label} is held at clocks that somebody set{clocks}");
        let remedy = "`sudo nvidia-smi -rac` and `-rgc` take that back";
        return Some(Problem::note(Code::SlowedDown, message).remedy(remedy));
    }
    reasons.contains(&Slowdown::PowerCap).then(|| {
        let message = format!("{label} draws the power it may{clocks}");
        Problem::note(Code::SlowedDown, message)
            .remedy("usual under load; a laptop's performance mode may allow more")
    })
}

fn power_limit(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let (limit, default) = (gpu.running.power_limit?, gpu.running.default_power_limit?);
    // Laptops move theirs by a few watts by themselves.
    (u64::from(limit) * 10 < u64::from(default) * 9).then(|| {
        let message = format!(
            "{} may draw {} W where it comes with {} W",
            gpu.label(),
            limit / 1000,
            default / 1000
        );
        let remedy = format!("`sudo nvidia-smi -pl {}`, if that was not meant", default / 1000);
        Problem::note(Code::PowerLimit, message).remedy(remedy)
    })
}

/// Somebody else's memory harms where no other card is free of it.
fn memory_held(gpu: &GpuFacts, machine: &Machine) -> Option<Problem> {
    let memory = gpu.memory.filter(|_| gpu.is_held())?;
    let free = machine.answering().find(|other| !other.is_held() && other.memory.is_some());
    let held = format!("{} of {}'s {} are held", memory.held, gpu.label(), memory.total);
    // A virtual GPU's margin is held by nobody.
    if gpu.is_virtual() {
        return None;
    }
    let Some(processes) = &gpu.processes else {
        let message = format!("{held}; who holds them is not told here");
        return Some(Problem::note(Code::MemoryHeld, message));
    };
    let computing: Bytes = processes.iter().filter(|it| it.computes).filter_map(|it| it.held).sum();
    let most: Vec<_> = processes.iter().take(3).map(described).collect();
    let by = match most.is_empty() {
        true => String::new(),
        false => format!(", most of it by {}", most.join(", ")),
    };
    let message = format!("{held}{by}");
    let margin = default_margin(memory.total, gpu.display.active.unwrap_or(true));
    if computing <= margin {
        let remedy = "plans count it as taken; fewer windows and a lighter desktop give some back";
        return Some(Problem::note(Code::MemoryHeld, message).remedy(remedy));
    }
    let pids: Vec<_> =
        processes.iter().filter(|it| it.computes).map(|it| it.pid.to_string()).collect();
    Some(match free {
        Some(other) => {
            let index = other.index.map_or_else(String::new, |index| index.to_string());
            Problem::note(Code::MemoryHeld, message)
                .remedy(format!("{} is free: `CUDA_VISIBLE_DEVICES={index}`", other.label()))
        }
        None => Problem::harms(Code::MemoryHeld, message).remedy(format!(
            "end them if they are yours (`kill {}`), or plan with what is left",
            pids.join(" ")
        )),
    })
}

/// A process with what it holds.
fn described(process: &Process) -> String {
    let name = process.name.as_deref().unwrap_or("a process that is not seen from here");
    let held = process.held.map_or_else(String::new, |held| format!(", {held}"));
    format!("{name} ({}{held})", process.pid)
}

fn mig(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let message = format!(
        "{} is divided into instances (MIG): a program gets one of them, with its part of the memory",
        gpu.label()
    );
    let remedy = "`nvidia-smi -L` lists them; name one as `CUDA_VISIBLE_DEVICES=MIG-…`, and its memory \
                  to plans as `--vram`";
    gpu.modes.mig.unwrap_or(false).then(|| Problem::note(Code::Mig, message).remedy(remedy))
}

fn compute_mode(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let label = gpu.label();
    let remedy = format!("`sudo nvidia-smi -i {} -c DEFAULT`", gpu.index.unwrap_or(0));
    let computing = gpu.processes.iter().flatten().find(|it| it.computes);
    match (gpu.modes.compute?, computing) {
        (ComputeMode::Default, _) => None,
        (ComputeMode::Prohibited, _) => {
            let message = format!("{label} is set so that nobody may compute on it");
            Some(Problem::prevents(Code::ComputeMode, message).remedy(remedy))
        }
        (ComputeMode::ExclusiveProcess, Some(process)) => {
            let message =
                format!("{label} is for one process at a time, and {} has it", described(process));
            Some(Problem::prevents(Code::ComputeMode, message).remedy(remedy))
        }
        (ComputeMode::ExclusiveProcess, None) => {
            let message = format!("{label} is for one process at a time");
            Some(Problem::note(Code::ComputeMode, message).remedy(remedy))
        }
    }
}

fn memory_errors(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let errors = gpu.modes.uncorrected_errors.filter(|errors| *errors > 0)?;
    let message = format!("{} had {errors} memory errors that could not be corrected", gpu.label());
    let remedy = "reboot, so that bad rows are replaced; if they come back, the card is broken";
    Some(Problem::harms(Code::MemoryErrors, message).remedy(remedy))
}

/// Width does not change with load, other than generation.
fn narrow_link(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let (width, highest) = (gpu.link.width?, gpu.link.highest_width?);
    (width < highest).then(|| {
        let message = format!("{} uses {width} of {highest} PCIe lanes", gpu.label());
        Problem::note(Code::NarrowLink, message)
            .remedy("copies from the host are slower; see the slot, its sharing, and the riser")
    })
}

fn no_bf16(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    let capability = gpu.compute_capability.filter(|it| !it.has_bf16())?;
    let message = format!(
        "{} (compute capability {capability}) has no bf16 and no tf32 in hardware; PyTorch emulates \
         bf16, many times slower",
        gpu.label()
    );
    let remedy = "train in fp16 with a gradient scaler, or in fp32";
    Some(Problem::note(Code::NoBf16, message).remedy(remedy))
}

fn no_profile(gpu: &GpuFacts, _: &Machine) -> Option<Problem> {
    (gpu.profiles.is_empty() && gpu.memory.is_some()).then(|| {
        let message = format!(
            "no profile describes {}; plans measure on the card itself, and its virtual twin is less \
             exact",
            gpu.product.as_deref().unwrap_or("this GPU")
        );
        Problem::note(Code::NoProfile, message).remedy("docs/profiles.md says how to add one")
    })
}
