//! Device management: which devices there are, their attributes, which is current.

use std::ffi::{c_char, c_int, c_uint};

use vramfit_vgpu_schema::Device;

use super::status::{
    INITIALIZATION_ERROR, INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, NOT_SUPPORTED, Status, UNKNOWN,
    status,
};
use crate::clock;
use crate::device::{self, Machine};
use crate::entry::{In, Out, entry_points};
use crate::graph::capture;
use crate::memory::pool;
use crate::nccl::watchdog;

/// The machine, unless there is none or this process was forked from one that used it.
pub(crate) fn ready() -> Result<&'static Machine, Status> {
    if device::forked() {
        return Err(INITIALIZATION_ERROR);
    }
    let machine = device::machine().ok_or(NO_DEVICE)?;
    device::watch_forks();
    if machine.visible().is_empty() { Err(NO_DEVICE) } else { Ok(machine) }
}

/// The device with a CUDA ordinal that came from outside.
pub(crate) fn checked(ordinal: c_int) -> Result<(usize, &'static Device), Status> {
    let machine = ready()?;
    let ordinal = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
    machine.device(ordinal).map(|device| (ordinal, device)).ok_or(INVALID_DEVICE)
}

/// Waits for the calling thread's device: nothing is ever under way, and the clock moves on.
pub(crate) fn synchronize() -> Result<(), Status> {
    ready()?;
    let ordinal = device::current();
    capture::forbid_device(ordinal)?;
    watchdog::synchronize();
    device::make_context(ordinal)?;
    clock::synchronize_device(ordinal);
    pool::synchronized();
    Ok(())
}

/// Largest pitch and grid, as all cards since compute capability 3.0 have them.
pub(crate) const MAX_GRID: [c_int; 3] = [i32::MAX, 65535, 65535];
pub(crate) const MAX_BLOCK: [c_int; 3] = [1024, 1024, 64];
/// Shared memory of a block that asks for nothing more: 48 KiB on every card.
pub(crate) const SHARED_PER_BLOCK: c_int = 48 << 10;
/// Registers one block may use.
pub(crate) const REGISTERS_PER_BLOCK: c_int = 64 << 10;
/// Kept by CUDA from each block's shared memory since compute capability 8.0.
pub(crate) fn reserved_shared(device: &Device) -> c_int {
    if device.compute_capability.0 >= 8 { 1 << 10 } else { 0 }
}

/// Attribute `attribute` (`cudaDeviceAttr`, the same numbers as `CUdevice_attribute`) of a device.
/// Limits that no program here asks for (textures, surfaces) are 0.
pub(crate) fn attribute(ordinal: usize, device: &Device, attribute: c_int) -> c_int {
    let hopper = device.compute_capability.0 >= 9;
    match attribute {
        1 => MAX_BLOCK[0],
        2..=4 => MAX_BLOCK[(attribute - 2) as usize],
        5..=7 => MAX_GRID[(attribute - 5) as usize],
        8 => SHARED_PER_BLOCK,
        9 => 64 << 10,  // constant memory
        10 => 32,       // warp
        11 => i32::MAX, // pitch
        12 => REGISTERS_PER_BLOCK,
        13 => device.clock_khz,
        14 | 30 => 512, // texture and surface alignment
        15 => 1,        // copies overlap kernels
        16 => device.multiprocessors,
        19 => 1, // host memory can be mapped
        31 => 1, // concurrent kernels
        33 => pci_bus(ordinal),
        36 => device.memory_clock_khz,
        37 => device.memory_bus_bits,
        38 => device.l2_cache_bytes,
        39 => device.threads_per_multiprocessor,
        40 => 2,  // copy engines
        41 => 1,  // unified addressing
        51 => 32, // texture pitch alignment
        75 => device.compute_capability.0,
        76 => device.compute_capability.1,
        78..=80 => 1, // stream priorities, L1 caching
        81 => device.shared_memory_per_multiprocessor,
        82 => device.registers_per_multiprocessor,
        83 => 1,      // managed memory
        89..=91 => 1, // concurrent managed access, preemption, registered host pointers
        95 => 1,      // cooperative launch
        97 => device.shared_memory_per_block_optin,
        99 => 1,        // host memory can be registered
        102 | 103 => 1, // virtual memory management, shared by file descriptor
        106 => device.blocks_per_multiprocessor,
        111 => reserved_shared(device),
        115 => 1,                   // memory pools
        120 => c_int::from(hopper), // clusters
        126 => {
            if hopper {
                4
            } else {
                1
            }
        } // memory synchronisation domains
        139 => device.pci_device_id as c_int, // device and vendor, as NVML has it
        _ => 0,
    }
}

entry_points! {
    on_panic = UNKNOWN;

    /// Number of visible devices.
    fn cudaGetDeviceCount(count: Out<c_int>) -> Status {
        count.set(0);
        status(ready().map(|machine| count.set(machine.visible().len() as c_int)))
    }

    /// The calling thread's device.
    fn cudaGetDevice(ordinal: Out<c_int>) -> Status {
        status(ready().map(|_| ordinal.set(device::current() as c_int)))
    }

    /// Makes a device current and, since CUDA 12, its context.
    fn cudaSetDevice(ordinal: c_int) -> Status {
        status(checked(ordinal).and_then(|(ordinal, _)| {
            device::set_current(ordinal);
            Ok(device::make_context(ordinal)?)
        }))
    }

    /// Makes a device's context.
    fn cudaInitDevice(ordinal: c_int, _device_flags: c_uint, _flags: c_uint) -> Status {
        status(checked(ordinal).and_then(|(ordinal, _)| Ok(device::make_context(ordinal)?)))
    }

    /// One attribute of a device.
    fn cudaDeviceGetAttribute(value: Out<c_int>, which: c_int, ordinal: c_int) -> Status {
        status(checked(ordinal).map(|(ordinal, device)| {
            value.set(attribute(ordinal, device, which));
        }))
    }

    /// Range of stream priorities, 0 to -5 on every recent card.
    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> Status {
        least.set(0);
        greatest.set(-5);
        status(Ok(()))
    }

    /// PCI address of a device.
    fn cudaDeviceGetPCIBusId(text: Out<u8>, capacity: c_int, ordinal: c_int) -> Status {
        status(checked(ordinal).and_then(|(ordinal, _)| {
            let capacity = usize::try_from(capacity).map_err(|_| INVALID_VALUE)?;
            text.set_text(&pci_address(ordinal), capacity);
            Ok(())
        }))
    }

    /// The device at a PCI address.
    fn cudaDeviceGetByPCIBusId(ordinal: Out<c_int>, address: In<c_char>) -> Status {
        status(ready().and_then(|machine| {
            let found = (0..machine.visible().len())
                .find(|ordinal| pci_address(*ordinal).eq_ignore_ascii_case(address.text()));
            ordinal.set(found.ok_or(INVALID_DEVICE)? as c_int);
            Ok(())
        }))
    }

    /// Whether two devices could copy directly. Virtual ones can.
    fn cudaDeviceCanAccessPeer(answer: Out<c_int>, first: c_int, second: c_int) -> Status {
        status(checked(first).and(checked(second)).map(|_| {
            answer.set(c_int::from(first != second));
        }))
    }

    /// Allows direct copies.
    fn cudaDeviceEnablePeerAccess(peer: c_int, _flags: c_uint) -> Status {
        status(checked(peer).map(|_| ()))
    }

    /// Waits for the device; nothing is ever under way.
    fn cudaDeviceSynchronize() -> Status {
        status(synchronize())
    }

    /// CUDA version that the driver supports, 0 without a driver; asking starts nothing.
    fn cudaDriverGetVersion(version: Out<c_int>) -> Status {
        version.set(device::machine().map_or(0, |machine| machine.description.cuda_version));
        status(Ok(()))
    }

    /// Starts a profiler, of which there is none.
    fn cudaProfilerStart() -> Status {
        status(Ok(()))
    }

    /// Stops a profiler, of which there is none.
    fn cudaProfilerStop() -> Status {
        status(Ok(()))
    }

    /// NVIDIA's private tables are not implemented.
    fn cudaGetExportTable(table: Out<*const std::ffi::c_void>, _id: *const u8) -> Status {
        table.set(std::ptr::null());
        status(Err(NOT_SUPPORTED))
    }
}

/// Bus of a device: the first of the description on bus 1, whichever of them are visible, as NVML says.
pub(super) fn pci_bus(ordinal: usize) -> c_int {
    let machine = device::machine();
    let index = machine.and_then(|machine| machine.visible().get(ordinal).copied());
    index.unwrap_or(ordinal) as c_int + 1
}

/// PCI address of CUDA ordinal `ordinal`: each device is alone on a bus.
pub(crate) fn pci_address(ordinal: usize) -> String {
    format!("0000:{:02X}:00.0", pci_bus(ordinal))
}
