//! Devices through NVML: which there are, and their fixed facts. What a virtual device has no value
//! for (temperature, power drawn, fans) is "not supported", as on many real ones.

use std::ffi::{c_char, c_void};

use super::{handle_of, initialized, status, with_device, write_text};
use crate::entry::{In, Out, entry_points};

/// `nvmlUtilization_t`, in percent.
#[repr(C)]
struct Utilization {
    gpu: u32,
    memory: u32,
}

/// `nvmlDeviceArchitecture_t` of a compute capability.
fn architecture(capability: (i32, i32)) -> u32 {
    match capability {
        (3, _) => 2,
        (5, _) => 3,
        (6, _) => 4,
        (7, 0..=4) => 5,
        (7, _) => 6,
        (8, 9) => 8,
        (8, _) => 7,
        (9, _) => 9,
        (10..=12, _) => 10,
        _ => u32::MAX,
    }
}

/// `nvmlBrandType_t`, from the product's name.
fn brand(name: &str) -> i32 {
    if name.contains("GeForce RTX") {
        15
    } else if name.contains("GeForce") {
        5
    } else if name.contains("TITAN RTX") {
        16
    } else if name.contains("TITAN") {
        6
    } else if name.contains("Quadro RTX") {
        12
    } else if name.contains("Quadro") {
        1
    } else if name.contains("RTX") {
        13
    } else {
        14
    }
}

/// Answers `value` through `out`.
fn number<T>(handle: *mut c_void, out: Out<T>, value: T) -> i32 {
    with_device(handle, |_, _| {
        out.set(value);
        status::SUCCESS
    })
}

/// A clock in MHz. NVML's clock types: 0 graphics, 1 multiprocessors, 2 memory, 3 video.
fn clock(handle: *mut c_void, which: u32, megahertz: Out<u32>) -> i32 {
    with_device(handle, |_, device| {
        let kilohertz = match which {
            0 | 1 => device.clock_khz,
            2 => device.memory_clock_khz,
            3 => return status::NOT_SUPPORTED,
            _ => return status::INVALID_ARGUMENT,
        };
        megahertz.set(kilohertz.unsigned_abs() / 1000);
        status::SUCCESS
    })
}

fn power_limit(handle: *mut c_void, milliwatts: Out<u32>) -> i32 {
    with_device(handle, |_, device| {
        milliwatts.set(device.power_limit_milliwatts);
        status::SUCCESS
    })
}

fn count(count: Out<u32>) -> i32 {
    initialized(|description| {
        count.set(description.devices.len() as u32);
        status::SUCCESS
    })
}

fn by_index(index: u32, handle: Out<*mut c_void>) -> i32 {
    initialized(|description| {
        if index as usize >= description.devices.len() {
            return status::INVALID_ARGUMENT;
        }
        handle.set(handle_of(index as usize));
        status::SUCCESS
    })
}

entry_points! { on_panic = status::UNKNOWN;
    fn nvmlDeviceGetCount(devices: Out<u32>) -> i32 {
        count(devices)
    }

    fn nvmlDeviceGetCount_v2(devices: Out<u32>) -> i32 {
        count(devices)
    }

    fn nvmlDeviceGetHandleByIndex(index: u32, handle: Out<*mut c_void>) -> i32 {
        by_index(index, handle)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: u32, handle: Out<*mut c_void>) -> i32 {
        by_index(index, handle)
    }

    fn nvmlDeviceGetHandleByUUID(uuid: In<c_char>, handle: Out<*mut c_void>) -> i32 {
        initialized(|description| {
            let uuid = uuid.text();
            match description.devices.iter().position(|it| it.uuid.eq_ignore_ascii_case(uuid)) {
                Some(index) => {
                    handle.set(handle_of(index));
                    status::SUCCESS
                }
                None => status::NOT_FOUND,
            }
        })
    }

    fn nvmlDeviceGetIndex(handle: *mut c_void, index: Out<u32>) -> i32 {
        with_device(handle, |own, _| {
            index.set(own as u32);
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetMinorNumber(handle: *mut c_void, minor: Out<u32>) -> i32 {
        with_device(handle, |index, _| {
            minor.set(index as u32);
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetName(handle: *mut c_void, buffer: Out<u8>, capacity: u32) -> i32 {
        with_device(handle, |_, device| write_text(buffer, capacity, &device.name))
    }

    fn nvmlDeviceGetUUID(handle: *mut c_void, buffer: Out<u8>, capacity: u32) -> i32 {
        with_device(handle, |_, device| write_text(buffer, capacity, &device.uuid))
    }

    fn nvmlDeviceGetCudaComputeCapability(handle: *mut c_void, major: Out<i32>, minor: Out<i32>) -> i32 {
        with_device(handle, |_, device| {
            major.set(device.compute_capability.0);
            minor.set(device.compute_capability.1);
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetArchitecture(handle: *mut c_void, out: Out<u32>) -> i32 {
        with_device(handle, |_, device| {
            out.set(architecture(device.compute_capability));
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetBrand(handle: *mut c_void, out: Out<i32>) -> i32 {
        with_device(handle, |_, device| {
            out.set(brand(&device.name));
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetMemoryBusWidth(handle: *mut c_void, bits: Out<u32>) -> i32 {
        with_device(handle, |_, device| {
            bits.set(device.memory_bus_bits.unsigned_abs());
            status::SUCCESS
        })
    }

    /// A virtual device runs at its highest clock whenever it is asked.
    fn nvmlDeviceGetClockInfo(handle: *mut c_void, which: u32, megahertz: Out<u32>) -> i32 {
        clock(handle, which, megahertz)
    }

    fn nvmlDeviceGetMaxClockInfo(handle: *mut c_void, which: u32, megahertz: Out<u32>) -> i32 {
        clock(handle, which, megahertz)
    }

    fn nvmlDeviceGetPowerManagementLimit(handle: *mut c_void, milliwatts: Out<u32>) -> i32 {
        power_limit(handle, milliwatts)
    }

    fn nvmlDeviceGetPowerManagementDefaultLimit(handle: *mut c_void, milliwatts: Out<u32>) -> i32 {
        power_limit(handle, milliwatts)
    }

    fn nvmlDeviceGetEnforcedPowerLimit(handle: *mut c_void, milliwatts: Out<u32>) -> i32 {
        power_limit(handle, milliwatts)
    }

    /// It executes nothing.
    fn nvmlDeviceGetUtilizationRates(handle: *mut c_void, utilization: Out<Utilization>) -> i32 {
        number(handle, utilization, Utilization { gpu: 0, memory: 0 })
    }

    /// `NVML_COMPUTEMODE_DEFAULT`: any number of processes.
    fn nvmlDeviceGetComputeMode(handle: *mut c_void, mode: Out<i32>) -> i32 {
        number(handle, mode, 0)
    }

    /// No screen hangs on it.
    fn nvmlDeviceGetDisplayActive(handle: *mut c_void, active: Out<i32>) -> i32 {
        number(handle, active, 0)
    }

    /// See `nvmlDeviceGetDisplayActive`.
    fn nvmlDeviceGetDisplayMode(handle: *mut c_void, mode: Out<i32>) -> i32 {
        number(handle, mode, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_follow_the_compute_capability() {
        for (capability, expected) in [
            ((7, 0), 5),
            ((7, 5), 6),
            ((8, 0), 7),
            ((8, 6), 7),
            ((8, 9), 8),
            ((9, 0), 9),
            ((12, 0), 10),
        ] {
            assert_eq!(architecture(capability), expected, "{capability:?}");
        }
    }
}
