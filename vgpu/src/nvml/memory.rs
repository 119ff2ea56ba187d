//! Memory through NVML: the device's, and each process's share.

use std::ffi::c_void;

use vramfit_vgpu_schema::Device;

use super::{status, with_device};
use crate::entry::{Out, entry_points};
use crate::processes;

/// `nvmlMemory_t`: `used` includes the driver's reserve, so that total = free + used.
#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`: `used` leaves the reserve out, so that total = reserved + free + used.
#[repr(C)]
struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

const _: () = assert!(size_of::<MemoryV2>() == 40);

/// `nvmlMemory_v2`: the structure's size, and its version in the top byte.
const MEMORY_V2: u32 = 40 | 2 << 24;

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
struct ProcessV1 {
    pid: u32,
    used: u64,
}

/// `nvmlProcessInfo_v2_t`, which the third version of the calls uses too.
#[repr(C)]
struct ProcessV2 {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

const _: () = assert!(size_of::<ProcessV1>() == 16 && size_of::<ProcessV2>() == 24);

/// Instance ids of a process on a device that is not partitioned.
const NO_INSTANCE: u32 = u32::MAX;

/// (reserved, used) of device `index` in bytes: what the driver keeps, and what processes and the
/// description's unnamed others hold.
fn split(device: &Device, held_by_processes: u64) -> (u64, u64) {
    let reserved = device.total_memory_bytes - device.usable_memory_bytes;
    let used = device.held_memory_bytes.saturating_add(held_by_processes);
    (reserved, used.min(device.usable_memory_bytes))
}

fn split_now(index: usize, device: &Device) -> (u64, u64) {
    let on_device = processes::list().into_iter().filter(|it| it.device == index);
    split(device, on_device.map(|it| it.bytes).sum())
}

/// Lists the processes on a device in the caller's array of `count` entries.
fn running<T>(
    handle: *mut c_void,
    count: Out<u32>,
    array: *mut T,
    entry: impl Fn(u32, u64) -> T,
) -> i32 {
    with_device(handle, |index, _| {
        let Some(room) = count.get() else { return status::INVALID_ARGUMENT };
        let on_device = processes::list().into_iter().filter(|it| it.device == index);
        let found: Vec<T> = on_device.map(|it| entry(it.pid, it.bytes)).collect();
        let Ok(needed) = u32::try_from(found.len()) else { return status::UNKNOWN };
        count.set(needed);
        if needed > room {
            return status::INSUFFICIENT_SIZE;
        }
        if needed > 0 && array.is_null() {
            return status::INVALID_ARGUMENT;
        }
        for (place, process) in found.into_iter().enumerate() {
            // SAFETY: the caller's array has room for `room` entries, and `place < needed <= room`.
            unsafe { array.add(place).write_unaligned(process) };
        }
        status::SUCCESS
    })
}

/// No process draws on a virtual device.
fn none(handle: *mut c_void, count: Out<u32>) -> i32 {
    with_device(handle, |_, _| {
        count.set(0);
        status::SUCCESS
    })
}

fn process_v1(pid: u32, used: u64) -> ProcessV1 {
    ProcessV1 { pid, used }
}

fn process_v2(pid: u32, used: u64) -> ProcessV2 {
    ProcessV2 { pid, used, gpu_instance: NO_INSTANCE, compute_instance: NO_INSTANCE }
}

entry_points! { on_panic = status::UNKNOWN;
    fn nvmlDeviceGetMemoryInfo(handle: *mut c_void, memory: Out<Memory>) -> i32 {
        with_device(handle, |index, device| {
            let (reserved, used) = split_now(index, device);
            let (total, used) = (device.total_memory_bytes, reserved + used);
            memory.set(Memory { total, free: total - used, used });
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetMemoryInfo_v2(handle: *mut c_void, memory: *mut MemoryV2) -> i32 {
        with_device(handle, |index, device| {
            if memory.is_null() {
                return status::INVALID_ARGUMENT;
            }
            // SAFETY: not null, and the interface asks for a structure whose version is filled in.
            let version = unsafe { (&raw const (*memory).version).read_unaligned() };
            if version != MEMORY_V2 {
                return status::ARGUMENT_VERSION_MISMATCH;
            }
            let (reserved, used) = split_now(index, device);
            let total = device.total_memory_bytes;
            let free = total - reserved - used;
            // SAFETY: as above; the version says that it is this structure.
            unsafe { memory.write_unaligned(MemoryV2 { version, total, reserved, free, used }) };
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetComputeRunningProcesses(handle: *mut c_void, count: Out<u32>,
        processes: *mut ProcessV1) -> i32 {
        running(handle, count, processes, process_v1)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(handle: *mut c_void, count: Out<u32>,
        processes: *mut ProcessV2) -> i32 {
        running(handle, count, processes, process_v2)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(handle: *mut c_void, count: Out<u32>,
        processes: *mut ProcessV2) -> i32 {
        running(handle, count, processes, process_v2)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(handle: *mut c_void, count: Out<u32>,
        _processes: *mut c_void) -> i32 {
        none(handle, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2(handle: *mut c_void, count: Out<u32>,
        _processes: *mut c_void) -> i32 {
        none(handle, count)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(handle: *mut c_void, count: Out<u32>,
        _processes: *mut c_void) -> i32 {
        none(handle, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::described;

    #[test]
    fn used_memory_holds_what_others_hold_and_never_more_than_is_usable() {
        let device: Device = described(
            r#"{"name":"x","uuid":"GPU-1","total_memory_bytes":1000,"usable_memory_bytes":900,
            "held_memory_bytes":50,"context_bytes":0,"compute_capability":[8,6],"multiprocessors":1,
            "l2_cache_bytes":0,"shared_memory_per_multiprocessor":0,"shared_memory_per_block_optin":0,
            "threads_per_multiprocessor":1536,"blocks_per_multiprocessor":16,
            "registers_per_multiprocessor":65536,"clock_khz":1,"memory_clock_khz":1,
            "memory_bus_bits":128,"pci_device_id":1,"power_limit_milliwatts":1}"#,
        );
        assert_eq!(split(&device, 0), (100, 50));
        assert_eq!(split(&device, 200), (100, 250));
        assert_eq!(split(&device, 5000), (100, 900));
    }
}
