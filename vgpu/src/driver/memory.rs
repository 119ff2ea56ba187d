//! Memory through the driver.

use std::ffi::{c_int, c_uint, c_void};

use vramfit_vgpu_cost::Work;

use super::context;
use super::device::code;
use crate::entry::{Out, entry_points};
use crate::graph::{Kind, capture};
use crate::runtime::status::{INVALID_VALUE, MEMORY_ALLOCATION, Status, UNKNOWN};
use crate::runtime::{
    allocate_host, copy_now, free_device, free_host, host_range, managed, ordered, ready, set_now,
};
use crate::{address_space, copy, device, memory};

/// `CUdeviceptr`.
type DevicePointer = u64;

fn done(valid: bool) -> Status {
    code(if valid { Ok(()) } else { Err(INVALID_VALUE) })
}

fn copied(target: DevicePointer, source: DevicePointer, bytes: usize) -> Status {
    code(copy_now(target as *mut c_void, source as *const c_void, bytes))
}

fn copied_in_order(
    target: DevicePointer,
    source: DevicePointer,
    bytes: usize,
    stream: *mut c_void,
) -> Status {
    code(ordered(stream, Kind::Copy, "cuMemcpyAsync", Work::Unknown, move || {
        copy::copy(target as *mut c_void, source as *const c_void, bytes)
    }))
}

/// Attributes of `CUpointer_attribute` that programs here ask for.
fn pointer_attribute(which: c_int, pointer: DevicePointer) -> Option<u64> {
    let address = pointer as *const c_void;
    let on_device = memory::allocation_of(address).is_some();
    if !on_device && host_range(address).is_none() {
        return None;
    }
    let ordinal = address_space::ordinal_of(address).unwrap_or_else(device::current);
    match which {
        1 => Some(context::handle(ordinal) as u64),
        2 => Some(if on_device { 2 } else { 1 }), // CU_MEMORYTYPE_DEVICE, _HOST
        3 | 4 => Some(pointer),                   // device and host pointer
        8 => Some(managed::holds(address).into()),
        9 => Some(ordinal as u64),
        _ => None,
    }
}

entry_points! {
    on_panic = UNKNOWN;

    /// Allocates device memory.
    fn cuMemAlloc_v2(pointer: Out<DevicePointer>, bytes: usize) -> Status {
        code(ready().and_then(|_| {
            capture::forbid_unsafe()?;
            let address = memory::allocate(bytes as u64).map_err(|_| MEMORY_ALLOCATION)?;
            pointer.set(address as DevicePointer);
            Ok(())
        }))
    }

    /// Frees device memory.
    fn cuMemFree_v2(pointer: DevicePointer) -> Status {
        code(free_device(pointer as *mut c_void))
    }

    /// Allocates pinned host memory.
    fn cuMemHostAlloc(pointer: Out<*mut c_void>, bytes: usize, _flags: c_uint) -> Status {
        code(allocate_host(bytes).map(|address| pointer.set(address)))
    }

    /// Frees pinned host memory.
    fn cuMemFreeHost(pointer: *mut c_void) -> Status {
        code(free_host(pointer))
    }

    /// The allocation around a pointer.
    fn cuMemGetAddressRange_v2(
        start: Out<DevicePointer>,
        bytes: Out<usize>,
        pointer: DevicePointer,
    ) -> Status {
        let range = memory::allocation_of(pointer as *const c_void);
        done(range.map(|(first, length)| {
            start.set(first);
            bytes.set(length as usize);
        })
        .is_some())
    }

    /// One attribute of a pointer; the kinds asked for here are 4 or 8 bytes wide.
    fn cuPointerGetAttribute(answer: *mut c_void, which: c_int, pointer: DevicePointer) -> Status {
        let Some(value) = pointer_attribute(which, pointer).filter(|_| !answer.is_null()) else {
            return INVALID_VALUE;
        };
        let wide = matches!(which, 1 | 3 | 4);
        // SAFETY: not null; the manual gives the width of each attribute, and the caller provides as much.
        unsafe {
            if wide {
                answer.cast::<u64>().write_unaligned(value);
            } else {
                answer.cast::<u32>().write_unaligned(value as u32);
            }
        }
        code(Ok(()))
    }

    /// Copies to the device.
    fn cuMemcpyHtoD_v2(target: DevicePointer, source: *const c_void, bytes: usize) -> Status {
        copied(target, source as DevicePointer, bytes)
    }

    /// Copies to the device, in order with a stream.
    fn cuMemcpyHtoDAsync_v2(
        target: DevicePointer,
        source: *const c_void,
        bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        copied_in_order(target, source as DevicePointer, bytes, stream)
    }

    /// Copies to the host.
    fn cuMemcpyDtoH_v2(target: *mut c_void, source: DevicePointer, bytes: usize) -> Status {
        copied(target as DevicePointer, source, bytes)
    }

    /// Copies to the host, in order with a stream.
    fn cuMemcpyDtoHAsync_v2(
        target: *mut c_void,
        source: DevicePointer,
        bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        copied_in_order(target as DevicePointer, source, bytes, stream)
    }

    /// Copies on or between devices.
    fn cuMemcpyDtoDAsync_v2(
        target: DevicePointer,
        source: DevicePointer,
        bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        copied_in_order(target, source, bytes, stream)
    }

    /// Sets bytes.
    fn cuMemsetD8_v2(target: DevicePointer, value: u8, bytes: usize) -> Status {
        code(set_now(target as *mut c_void, value, bytes))
    }

    /// Sets bytes, in order with a stream.
    fn cuMemsetD8Async(
        target: DevicePointer,
        value: u8,
        bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        code(ordered(stream, Kind::Set, "cuMemsetAsync", Work::Unknown, move || {
            copy::set(target as *mut c_void, value, bytes)
        }))
    }
}
