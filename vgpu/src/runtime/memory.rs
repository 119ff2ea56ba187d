//! Memory management: device memory, pinned host memory, copies, memsets, pointer attributes.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use super::device::{checked, ready};
use super::managed;
use super::status::{INVALID_VALUE, MEMORY_ALLOCATION, Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};
use crate::nccl::watchdog;
use crate::{address_space, copy, device, memory};

/// What is known of a range of pinned host memory.
#[derive(Clone, Copy)]
struct HostRange {
    bytes: usize,
    /// Allocated here, not merely registered.
    owned: bool,
}

static HOST: Mutex<BTreeMap<usize, HostRange>> = Mutex::new(BTreeMap::new());

/// The pinned host range that holds `pointer`: its start and length in bytes.
pub(crate) fn host_range(pointer: *const c_void) -> Option<(usize, usize)> {
    let host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    let (&start, range) = host.range(..=pointer as usize).next_back()?;
    ((pointer as usize) < start + range.bytes).then_some((start, range.bytes))
}

/// Allocates pinned host memory. Pages take memory only once they are touched, as on a real machine
/// they would at once: what the host's own limits would say is not modelled.
pub(crate) fn allocate_host(bytes: usize) -> Result<*mut c_void, Status> {
    ready()?;
    let bytes = bytes.max(1).next_multiple_of(4096);
    // SAFETY: an anonymous mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(MEMORY_ALLOCATION);
    }
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    host.insert(address as usize, HostRange { bytes, owned: true });
    Ok(address)
}

/// Frees pinned host memory.
pub(crate) fn free_host(pointer: *mut c_void) -> Result<(), Status> {
    if pointer.is_null() {
        return Ok(());
    }
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    match host.get(&(pointer as usize)) {
        Some(range) if range.owned => {
            // SAFETY: the mapping was made by `allocate_host`, is as long as noted, and its owner
            // gives it up.
            unsafe { libc::munmap(pointer, range.bytes) };
            host.remove(&(pointer as usize));
            Ok(())
        }
        _ => Err(INVALID_VALUE),
    }
}

/// Pins a range that the program allocated itself.
fn register_host(pointer: *mut c_void, bytes: usize) -> Result<(), Status> {
    ready()?;
    if pointer.is_null() || bytes == 0 || (pointer as usize).checked_add(bytes).is_none() {
        return Err(INVALID_VALUE);
    }
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    host.insert(pointer as usize, HostRange { bytes, owned: false });
    Ok(())
}

/// Undoes [`register_host`].
fn unregister_host(pointer: *mut c_void) -> Result<(), Status> {
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    match host.get(&(pointer as usize)) {
        Some(range) if !range.owned => {
            host.remove(&(pointer as usize));
            Ok(())
        }
        _ => Err(INVALID_VALUE),
    }
}

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

fn done(valid: bool) -> Status {
    status(if valid { Ok(()) } else { Err(INVALID_VALUE) })
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
            pointer.set(memory::allocate(bytes as u64)?);
            Ok(())
        }))
    }

    /// Frees device memory.
    fn cudaFree(pointer: *mut c_void) -> Status {
        // `cudaFree(nullptr)` is the usual way to make a context.
        if pointer.is_null() {
            return status(ready().and_then(|_| Ok(device::make_context(device::current())?)));
        }
        // A forked child has its parent's pointers, but must not free what is the parent's.
        status(ready().and_then(|_| {
            let freed = memory::free(pointer) || managed::free(pointer);
            if freed { Ok(()) } else { Err(INVALID_VALUE) }
        }))
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

    /// Allocates pinned host memory.
    fn cudaHostAlloc(pointer: Out<*mut c_void>, bytes: usize, _flags: c_uint) -> Status {
        status(allocate_host(bytes).map(|address| pointer.set(address)))
    }

    /// Allocates pinned host memory.
    fn cudaMallocHost(pointer: Out<*mut c_void>, bytes: usize) -> Status {
        status(allocate_host(bytes).map(|address| pointer.set(address)))
    }

    /// Frees pinned host memory.
    fn cudaFreeHost(pointer: *mut c_void) -> Status {
        status(free_host(pointer))
    }

    /// Pins host memory.
    fn cudaHostRegister(pointer: *mut c_void, bytes: usize, _flags: c_uint) -> Status {
        status(register_host(pointer, bytes))
    }

    /// Unpins host memory.
    fn cudaHostUnregister(pointer: *mut c_void) -> Status {
        status(unregister_host(pointer))
    }

    /// The device's address of pinned host memory: with unified addressing the same.
    fn cudaHostGetDevicePointer(
        target: Out<*mut c_void>,
        pointer: *mut c_void,
        _flags: c_uint,
    ) -> Status {
        target.set(pointer);
        done(host_range(pointer).is_some())
    }

    /// Copies.
    fn cudaMemcpy(
        target: *mut c_void,
        source: *const c_void,
        bytes: usize,
        _kind: c_int,
    ) -> Status {
        watchdog::synchronize();
        done(copy::copy(target, source, bytes))
    }

    /// Copies, in order with a stream.
    fn cudaMemcpyAsync(
        target: *mut c_void,
        source: *const c_void,
        bytes: usize,
        _kind: c_int,
        _stream: *mut c_void,
    ) -> Status {
        done(copy::copy(target, source, bytes))
    }

    /// Copies between devices.
    fn cudaMemcpyPeerAsync(
        target: *mut c_void,
        target_device: c_int,
        source: *const c_void,
        source_device: c_int,
        bytes: usize,
        _stream: *mut c_void,
    ) -> Status {
        status(checked(target_device).and(checked(source_device)).and_then(|_| {
            if copy::copy(target, source, bytes) { Ok(()) } else { Err(INVALID_VALUE) }
        }))
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
        _stream: *mut c_void,
    ) -> Status {
        done(copy::copy_2d(target, target_pitch, source, source_pitch, width, rows))
    }

    /// Sets bytes.
    fn cudaMemset(target: *mut c_void, value: c_int, bytes: usize) -> Status {
        done(copy::set(target, value as u8, bytes))
    }

    /// Sets bytes, in order with a stream.
    fn cudaMemsetAsync(
        target: *mut c_void,
        value: c_int,
        bytes: usize,
        _stream: *mut c_void,
    ) -> Status {
        done(copy::set(target, value as u8, bytes))
    }

    /// What a pointer points at.
    fn cudaPointerGetAttributes(answer: Out<PointerAttributes>, pointer: *mut c_void) -> Status {
        status(ready().map(|_| answer.set(pointer_attributes(pointer))))
    }
}
