//! Pinned host memory.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use super::device::ready;
use super::status::{INVALID_VALUE, MEMORY_ALLOCATION, Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};
use crate::graph::capture;

/// What is known of a range of pinned host memory.
#[derive(Clone, Copy)]
struct HostRange {
    bytes: usize,
    kind: HostKind,
}

/// How a range came to be pinned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKind {
    /// Allocated here.
    Allocated,
    /// Allocated here, for host and device.
    Managed,
    /// The program's own, registered.
    Registered,
}

static HOST: Mutex<BTreeMap<usize, HostRange>> = Mutex::new(BTreeMap::new());

/// The pinned host range that holds `pointer`: its start and length in bytes.
pub(crate) fn host_range(pointer: *const c_void) -> Option<(usize, usize)> {
    found(pointer).map(|(start, range)| (start, range.bytes))
}

/// Where the range that holds `pointer` starts and how it came to be pinned.
pub(super) fn host_kind(pointer: *const c_void) -> Option<(usize, HostKind)> {
    found(pointer).map(|(start, range)| (start, range.kind))
}

fn found(pointer: *const c_void) -> Option<(usize, HostRange)> {
    let host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    let (&start, range) = host.range(..=pointer as usize).next_back()?;
    ((pointer as usize) < start + range.bytes).then_some((start, *range))
}

/// Allocates pinned host memory. Pages take memory only once they are touched, as on a real machine
/// they would at once: what the host's own limits would say is not modelled.
pub(crate) fn allocate_host(bytes: usize) -> Result<*mut c_void, Status> {
    allocate_as(HostKind::Allocated, bytes)
}

/// As [`allocate_host`], for a purpose.
pub(super) fn allocate_as(kind: HostKind, bytes: usize) -> Result<*mut c_void, Status> {
    ready()?;
    capture::forbid_unsafe()?;
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
    host.insert(address as usize, HostRange { bytes, kind });
    Ok(address)
}

/// Frees pinned host memory.
pub(crate) fn free_host(pointer: *mut c_void) -> Result<(), Status> {
    if pointer.is_null() {
        return Ok(());
    }
    capture::forbid_unsafe()?;
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    match host.get(&(pointer as usize)) {
        Some(range) if range.kind != HostKind::Registered => {
            // SAFETY: the mapping was made by `allocate_as`, is as long as noted, and its owner
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
    host.insert(pointer as usize, HostRange { bytes, kind: HostKind::Registered });
    Ok(())
}

/// Undoes [`register_host`].
fn unregister_host(pointer: *mut c_void) -> Result<(), Status> {
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    match host.get(&(pointer as usize)) {
        Some(range) if range.kind == HostKind::Registered => {
            host.remove(&(pointer as usize));
            Ok(())
        }
        _ => Err(INVALID_VALUE),
    }
}

entry_points! {
    on_panic = UNKNOWN;

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
        status(host_range(pointer).map(|_| ()).ok_or(INVALID_VALUE))
    }
}
