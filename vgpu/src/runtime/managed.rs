//! Managed memory: one address for host and device, between which the driver moves its pages.
//!
//! It lies on the host here, and none of it is charged to a device. That is what decides whether a
//! program fits: pages move to the device as far as there is room, and away again when an allocation
//! needs it (CUDA programming guide, "Unified memory": oversubscription). Paged optimizers
//! (bitsandbytes) keep their states in it.

use std::ffi::{c_int, c_uint, c_void};

use super::device::ready;
use super::host::{HostKind, allocate_as, free_host, host_kind};
use super::status::{INVALID_VALUE, Status, UNKNOWN, status};
use crate::activity;
use crate::entry::{Out, entry_points};

/// What the report says of it.
const BASIS: &str = "managed memory: not counted, as the driver moves it off a device whose room is \
                     needed";

/// Allocates `bytes` bytes.
pub(crate) fn allocate(bytes: usize) -> Result<*mut c_void, Status> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let address = allocate_as(HostKind::Managed, bytes)?;
    activity::estimate(BASIS);
    Ok(address)
}

/// Frees what [`allocate`] gave; false for any other pointer.
pub(crate) fn free(pointer: *mut c_void) -> bool {
    host_kind(pointer) == Some((pointer as usize, HostKind::Managed)) && free_host(pointer).is_ok()
}

/// Whether `pointer` points into managed memory.
pub(crate) fn holds(pointer: *const c_void) -> bool {
    host_kind(pointer).is_some_and(|(_, kind)| kind == HostKind::Managed)
}

/// Advice on where pages shall be, which changes nothing here.
pub(crate) fn advised(pointer: *const c_void) -> Result<(), Status> {
    ready()?;
    if holds(pointer) { Ok(()) } else { Err(INVALID_VALUE) }
}

entry_points! {
    on_panic = UNKNOWN;

    /// Allocates managed memory.
    fn cudaMallocManaged(pointer: Out<*mut c_void>, bytes: usize, _flags: c_uint) -> Status {
        status(allocate(bytes).map(|address| pointer.set(address)))
    }

    /// Moves pages ahead of their use. What comes after the size differs between CUDA 12 and 13.
    fn cudaMemPrefetchAsync(pointer: *const c_void, _bytes: usize) -> Status {
        status(advised(pointer))
    }

    /// Moves pages ahead of their use.
    fn cudaMemPrefetchAsync_v2(pointer: *const c_void, _bytes: usize) -> Status {
        status(advised(pointer))
    }

    /// Advises on the use of pages. The type of the last argument differs between CUDA 12 and 13.
    fn cudaMemAdvise(pointer: *const c_void, _bytes: usize, _advice: c_int) -> Status {
        status(advised(pointer))
    }

    /// Advises on the use of pages.
    fn cudaMemAdvise_v2(pointer: *const c_void, _bytes: usize, _advice: c_int) -> Status {
        status(advised(pointer))
    }
}
