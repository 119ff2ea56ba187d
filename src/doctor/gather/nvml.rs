//! GPUs by NVML. Each question may go unanswered on its own.

use std::fs;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{
    Clock, ComputeMode as Mode, EccCounter, MemoryError, PerformanceState, TemperatureSensor,
    TemperatureThreshold,
};
use nvml_wrapper::enums::device::{PowerSource, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::{Reach, fails};
use crate::device::{VIRTUAL_SUFFIX, board_memory};
use crate::doctor::machine::{
    Access, ComputeMode, Display, GpuFacts, Link, Memory, Modes, Process, Running, Slowdown,
};
use crate::profile::gpu::ComputeCapability;
use crate::profile::limits::Limits;

/// The cards that NVML counts, those that do not answer among them.
///
/// # Errors
/// When it does not even count them.
pub(super) fn gpus(nvml: &Nvml, reach: &Reach<'_>) -> Result<Vec<GpuFacts>, NvmlError> {
    let count = nvml.device_count()?;
    // One bad card must not hide the others.
    let found = (0..count).map(|index| match nvml.device_by_index(index) {
        Ok(device) => gpu(&device, index, reach),
        Err(error) => GpuFacts { index: Some(index), access: fails(&error), ..GpuFacts::unknown() },
    });
    Ok(found.collect())
}

fn gpu(device: &Device<'_>, index: u32, reach: &Reach<'_>) -> GpuFacts {
    // A card that is lost still has a handle; what every card tells is its name.
    let (product, access) = match device.name() {
        Ok(product) => (Some(product), Access::Answers),
        Err(error) => (None, fails(&error)),
    };
    let compute_capability = device.cuda_compute_capability().ok().and_then(|it| {
        let (major, minor) = (u32::try_from(it.major).ok()?, u32::try_from(it.minor).ok()?);
        (major > 0).then_some(ComputeCapability { major, minor })
    });
    // Boards that share the CPU's memory answer with zeros.
    let board = board_memory(device).ok().filter(|memory| memory.total.get() > 0);
    let profile = product.as_deref().zip(board).and_then(|(product, memory)| {
        let cores = compute_capability.map(|it| Limits::of(it).cores)?;
        let multiprocessors = device.num_cores().ok().map(|count| (count / cores).max(1));
        let product = product.trim_end_matches(VIRTUAL_SUFFIX);
        reach.catalog.match_product(product, memory.total, multiprocessors).ok().flatten()
    });
    GpuFacts {
        index: Some(index),
        pci: device.pci_info().ok().map(|it| short_address(&it.bus_id)),
        uuid: device.uuid().ok(),
        profiles: profile.into_iter().map(|profile| profile.name).collect(),
        access,
        compute_capability,
        memory: board.map(|memory| Memory {
            total: memory.total,
            reserved: memory.reserved,
            held: memory.held(),
            free: memory.free,
        }),
        processes: processes(device, reach),
        display: Display {
            attached: device.is_display_connected().ok(),
            active: device.is_display_active().ok(),
        },
        running: running(device),
        link: Link {
            generation: device.current_pcie_link_gen().ok(),
            highest_generation: device.max_pcie_link_gen().ok(),
            width: device.current_pcie_link_width().ok(),
            highest_width: device.max_pcie_link_width().ok(),
        },
        modes: modes(device),
        product,
        ..GpuFacts::unknown()
    }
}

/// NVML's `00000000:01:00.0` as the kernel writes it, `0000:01:00.0`.
fn short_address(address: &str) -> String {
    let address = address.to_ascii_lowercase();
    match address.split_once(':') {
        Some((domain, rest)) if domain.len() > 4 => {
            format!("{}:{rest}", &domain[domain.len() - 4..])
        }
        _ => address,
    }
}

fn processes(device: &Device<'_>, reach: &Reach<'_>) -> Option<Vec<Process>> {
    let computing = device.running_compute_processes().ok()?;
    let drawing = device.running_graphics_processes().unwrap_or_default();
    let described = |info: &ProcessInfo, computes| Process {
        pid: info.pid,
        name: name_of(reach, info.pid),
        held: match info.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(crate::units::Bytes(bytes)),
            UsedGpuMemory::Unavailable => None,
        },
        computes,
    };
    let mut found: Vec<_> = computing.iter().map(|info| described(info, true)).collect();
    let also_draws = |info: &&ProcessInfo| !computing.iter().any(|it| it.pid == info.pid);
    found.extend(drawing.iter().filter(also_draws).map(|info| described(info, false)));
    found.sort_by_key(|process| std::cmp::Reverse(process.held));
    Some(found)
}

/// The program of a process that can be seen from here. In a container NVML's ids are the host's.
fn name_of(reach: &Reach<'_>, pid: u32) -> Option<String> {
    let text = fs::read_to_string(reach.path(&format!("proc/{pid}/comm"))).ok()?;
    Some(crate::error::shorten(&text, 40))
}

fn running(device: &Device<'_>) -> Running {
    let slowed = device.current_throttle_reasons().ok();
    Running {
        clock: device.clock_info(Clock::SM).ok(),
        highest_clock: device.max_clock_info(Clock::SM).ok(),
        performance_state: device.performance_state().ok().and_then(state_number),
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        slowdown_temperature: device.temperature_threshold(TemperatureThreshold::Slowdown).ok(),
        power: device.power_usage().ok(),
        power_limit: device
            .enforced_power_limit()
            .or_else(|_| device.power_management_limit())
            .ok(),
        default_power_limit: device.power_management_limit_default().ok(),
        slowed_by: slowed.map(slowdowns),
        on_battery: device.power_source().ok().map(|it| it == PowerSource::Battery),
        utilization: device.utilization_rates().ok().map(|it| it.gpu),
    }
}

fn state_number(state: PerformanceState) -> Option<u32> {
    let number = state.as_c();
    (number < 16).then_some(number)
}

/// NVML's bits as reasons; bits that it may add one day are left out.
fn slowdowns(reasons: ThrottleReasons) -> Vec<Slowdown> {
    let all = [
        (ThrottleReasons::GPU_IDLE, Slowdown::Idle),
        (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, Slowdown::SetClocks),
        (ThrottleReasons::SW_POWER_CAP, Slowdown::PowerCap),
        (ThrottleReasons::HW_SLOWDOWN, Slowdown::Hardware),
        (ThrottleReasons::SYNC_BOOST, Slowdown::SyncBoost),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, Slowdown::SoftwareThermal),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, Slowdown::HardwareThermal),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, Slowdown::PowerBrake),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, Slowdown::DisplayClock),
    ];
    all.into_iter().filter(|(bit, _)| reasons.contains(*bit)).map(|(_, reason)| reason).collect()
}

fn modes(device: &Device<'_>) -> Modes {
    let ecc = device.is_ecc_enabled().ok().map(|it| it.currently_enabled);
    let errors = |_| device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok();
    Modes {
        ecc,
        uncorrected_errors: ecc.filter(|on| *on).and_then(errors),
        mig: device.mig_mode().ok().map(|it| it.current == 1),
        persistence: device.is_in_persistent_mode().ok(),
        compute: device.compute_mode().ok().and_then(|mode| match mode {
            Mode::Default => Some(ComputeMode::Default),
            Mode::ExclusiveProcess => Some(ComputeMode::ExclusiveProcess),
            Mode::Prohibited => Some(ComputeMode::Prohibited),
            _ => None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_kernel() {
        assert_eq!(short_address("00000000:01:00.0"), "0000:01:00.0");
        assert_eq!(short_address("00000001:0A:00.0"), "0001:0a:00.0");
        assert_eq!(short_address("0000:01:00.0"), "0000:01:00.0");
    }

    #[test]
    fn reasons_are_read_bit_by_bit() {
        let bits = ThrottleReasons::from_bits_truncate(0x20 | 0x4 | 0x400);
        assert_eq!(slowdowns(bits), [Slowdown::PowerCap, Slowdown::SoftwareThermal]);
        assert_eq!(slowdowns(ThrottleReasons::NONE), []);
    }
}
