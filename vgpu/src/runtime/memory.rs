//! Memory management: device memory, copies, memsets, pointer attributes.

use std::ffi::{c_int, c_void};

use vramfit_vgpu_cost::Work;

use super::device::{checked, ready};
use super::host::host_range;
use super::managed;
use super::status::{INVALID_VALUE, Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};
use crate::graph::{Kind, capture};
use crate::memory::pool;
use crate::nccl::watchdog;
use crate::{address_space, clock, copy, device, memory};

/// The part of `cudaPointerAttributes` that CUDA 12 and 13 share.
#[repr(C)]
struct PointerAttributes {
    /// 0 unregistered, 1 host, 2 device, 3 managed.
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
}

fn pointer_attributes(pointer: *mut c_void) -> PointerAttributes {
    let null = std::ptr::null_mut();
    if memory::allocation_of(pointer).is_some() {
        let ordinal = address_space::ordinal_of(pointer).unwrap_or_default();
        PointerAttributes {
            kind: 2,
            device: ordinal as c_int,
            device_pointer: pointer,
            host_pointer: null,
        }
    } else if host_range(pointer).is_some() {
        PointerAttributes {
            kind: if managed::holds(pointer) { 3 } else { 1 },
            device: device::current() as c_int,
            device_pointer: pointer,
            host_pointer: pointer,
        }
    } else {
        // cudaInvalidDeviceId is -2.
        PointerAttributes { kind: 0, device: -2, device_pointer: null, host_pointer: pointer }
    }
}

fn valid_or_refused(valid: bool) -> Result<(), Status> {
    if valid { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Frees device memory, also of a pool or a graph.
pub(crate) fn free_device(pointer: *mut c_void) -> Result<(), Status> {
    ready()?;
    // `cudaFree(nullptr)` is the usual way to make a context.
    if pointer.is_null() {
        return Ok(device::make_context(device::current())?);
    }
    capture::forbid_unsafe()?;
    let address = pointer as u64;
    // A forked child has its parent's pointers, but must not free what is the parent's.
    valid_or_refused(
        memory::free(pointer)
            || pool::free(address)
            || memory::graph::free(address)
            || managed::free(pointer),
    )
}

/// Gives `stream` what asks `work` of the device and may fail if it is done now: `effect` is captured, or
/// done and its result the call's.
pub(crate) fn ordered(
    stream: *mut c_void,
    kind: Kind,
    name: &'static str,
    work: Work,
    effect: impl Fn() -> bool + Send + Sync + Copy + 'static,
) -> Result<(), Status> {
    let captured = capture::take(stream, kind, name, &work, move || {
        effect();
    })?;
    if captured {
        return Ok(());
    }
    valid_or_refused(effect())?;
    clock::run(name, &work);
    Ok(())
}

/// Copies at once, after the host has waited for the device.
pub(crate) fn copy_now(
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
) -> Result<(), Status> {
    ready()?;
    capture::forbid_unsafe()?;
    watchdog::synchronize();
    pool::synchronized();
    valid_or_refused(copy::copy(target, source, bytes))
}

/// Sets bytes at once.
pub(crate) fn set_now(target: *mut c_void, value: u8, bytes: usize) -> Result<(), Status> {
    ready()?;
    capture::forbid_unsafe()?;
    valid_or_refused(copy::set(target, value, bytes))
}

fn copy_ordered(
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    stream: *mut c_void,
) -> Result<(), Status> {
    let (target, source) = (target as usize, source as usize);
    ordered(stream, Kind::Copy, "cudaMemcpyAsync", Work::Unknown, move || {
        copy::copy(target as *mut c_void, source as *const c_void, bytes)
    })
}

entry_points! {
    on_panic = UNKNOWN;

    /// Allocates device memory.
    fn cudaMalloc(pointer: Out<*mut c_void>, bytes: usize) -> Status {
        if pointer.is_null() {
            return status(Err(INVALID_VALUE));
        }
        pointer.set(std::ptr::null_mut());
        status(ready().and_then(|_| {
            capture::forbid_unsafe()?;
            pointer.set(memory::allocate(bytes as u64)?);
            Ok(())
        }))
    }

    /// Frees device memory.
    fn cudaFree(pointer: *mut c_void) -> Status {
        status(free_device(pointer))
    }

    /// Free and total memory of the current device; makes its context.
    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) -> Status {
        status(ready().and_then(|_| {
            let (free_bytes, total_bytes) = memory::info(device::current())?;
            free.set(free_bytes as usize);
            total.set(total_bytes as usize);
            Ok(())
        }))
    }

    /// Copies.
    fn cudaMemcpy(
        target: *mut c_void,
        source: *const c_void,
        bytes: usize,
        _kind: c_int,
    ) -> Status {
        status(copy_now(target, source, bytes))
    }

    /// Copies, in order with a stream.
    fn cudaMemcpyAsync(
        target: *mut c_void,
        source: *const c_void,
        bytes: usize,
        _kind: c_int,
        stream: *mut c_void,
    ) -> Status {
        status(copy_ordered(target, source, bytes, stream))
    }

    /// Copies between devices.
    fn cudaMemcpyPeerAsync(
        target: *mut c_void,
        target_device: c_int,
        source: *const c_void,
        source_device: c_int,
        bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        status(
            checked(target_device)
                .and(checked(source_device))
                .and_then(|_| copy_ordered(target, source, bytes, stream)),
        )
    }

    /// Copies rows.
    fn cudaMemcpy2DAsync(
        target: *mut c_void,
        target_pitch: usize,
        source: *const c_void,
        source_pitch: usize,
        width: usize,
        rows: usize,
        _kind: c_int,
        stream: *mut c_void,
    ) -> Status {
        let (target, source) = (target as usize, source as usize);
        status(ordered(stream, Kind::Copy, "cudaMemcpy2DAsync", Work::Unknown, move || {
            let (target, source) = (target as *mut c_void, source as *const c_void);
            copy::copy_2d(target, target_pitch, source, source_pitch, width, rows)
        }))
    }

    /// Sets bytes.
    fn cudaMemset(target: *mut c_void, value: c_int, bytes: usize) -> Status {
        status(set_now(target, value as u8, bytes))
    }

    /// Sets bytes, in order with a stream.
    fn cudaMemsetAsync(
        target: *mut c_void,
        value: c_int,
        bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        let target = target as usize;
        status(ordered(stream, Kind::Set, "cudaMemsetAsync", Work::Unknown, move || {
            copy::set(target as *mut c_void, value as u8, bytes)
        }))
    }

    /// What a pointer points at.
    fn cudaPointerGetAttributes(answer: Out<PointerAttributes>, pointer: *mut c_void) -> Status {
        status(ready().map(|_| answer.set(pointer_attributes(pointer))))
    }
}
