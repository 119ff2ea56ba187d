//! What lies around the GPUs: the system's policies, the environment, the power cord.

use super::{Code, Problem, Severity};
use crate::device::Platform;
use crate::doctor::machine::{Access, Machine};

pub(super) fn problems(machine: &Machine) -> Vec<Problem> {
    [board, spill, battery, visible_devices, mps].into_iter().filter_map(|it| it(machine)).collect()
}

fn board(machine: &Machine) -> Option<Problem> {
    let board = machine.system.board.as_deref()?;
    let message =
        format!("{board}: its GPU shares memory with the CPU, which vramfit cannot plan on");
    let remedy = "plan for a card of about that memory, and watch `free` while training";
    Some(Problem::note(Code::SharedMemoryBoard, message).remedy(remedy))
}

/// Windows since driver 536.40 (NVIDIA's answer a_id/5490); no interface tells how it is set.
fn spill(machine: &Machine) -> Option<Problem> {
    let windows =
        machine.system.platform == Platform::Wsl && machine.driver.nvml == Access::Answers;
    windows.then(|| {
        Problem::note(
            Code::Spill,
            "Windows may move GPU memory that runs over to the host instead of failing, many times \
             slower; how it is set cannot be read from here",
        )
        .remedy(
            "in Windows: NVIDIA Control Panel, Manage 3D settings, CUDA - Sysmem Fallback Policy: \
             Prefer No Sysmem Fallback",
        )
    })
}

fn battery(machine: &Machine) -> Option<Problem> {
    let gpus = machine.answering().any(|gpu| gpu.running.on_battery == Some(true));
    let on_battery = gpus || machine.system.on_battery == Some(true);
    (on_battery && machine.has_gpu()).then(|| {
        Problem::harms(
            Code::OnBattery,
            "the machine runs on its battery, with little power for the GPU",
        )
        .remedy("plug it in; with its own power supply, not by USB-C alone")
    })
}

fn visible_devices(machine: &Machine) -> Option<Problem> {
    let value = machine.system.visible_devices.as_deref()?;
    machine.answering().next()?;
    // CUDA stops at the first entry that names no device.
    let hides_all = value.trim().is_empty() || value.starts_with("-1") || value == "NoDevFiles";
    let named = format!("`CUDA_VISIBLE_DEVICES` is `{value}`");
    Some(match hides_all {
        true => Problem::prevents(
            Code::VisibleDevices,
            format!("{named}, which hides every GPU from CUDA"),
        )
        .remedy("`unset CUDA_VISIBLE_DEVICES`"),
        // On the virtual GPU of `vramfit run` it is set for the program.
        false if machine.answering().all(|gpu| gpu.is_virtual()) => return None,
        false => Problem::new(
            Code::VisibleDevices,
            Severity::Note,
            format!("{named}: programs see no other GPUs, and count these from 0"),
        ),
    })
}

fn mps(machine: &Machine) -> Option<Problem> {
    let system = &machine.system;
    if let Some(limit) = &system.mps_memory_limit {
        let message =
            format!("`CUDA_MPS_PINNED_DEVICE_MEM_LIMIT` is `{limit}`: programs cannot have more");
        let remedy = "pass it to plans as `--vram`, or unset it";
        return Some(Problem::note(Code::Mps, message).remedy(remedy));
    }
    system.mps.then(|| {
        Problem::note(
            Code::Mps,
            "CUDA's multi-process service runs: what a program holds may be counted for its server",
        )
        .remedy("`echo quit | nvidia-cuda-mps-control` ends it")
    })
}
