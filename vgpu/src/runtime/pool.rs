//! The stream-ordered allocator: `cudaMallocAsync` and memory pools.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vramfit_vgpu_schema::Description;

use super::device::{checked, ready};
use super::status::{INVALID_VALUE, NOT_SUPPORTED, Status, UNKNOWN, status};
use super::stream::stream;
use crate::activity;
use crate::entry::{In, Out, entry_points};
use crate::graph::capture;
use crate::handles::Handles;
use crate::memory;
use crate::memory::pool::{self, Pool};

static POOLS: Handles<Pool> = Handles::new();
/// Handles of each device's own pool and of the one in use, 0 before they were asked for.
static DEFAULT: [AtomicUsize; Description::MAX_DEVICES] =
    [const { AtomicUsize::new(0) }; Description::MAX_DEVICES];
static CURRENT: [AtomicUsize; Description::MAX_DEVICES] =
    [const { AtomicUsize::new(0) }; Description::MAX_DEVICES];

/// The pool behind `handle`.
pub(crate) fn pool(handle: *mut c_void) -> Result<Arc<Pool>, Status> {
    ready()?;
    POOLS.get(handle).ok_or(INVALID_VALUE)
}

/// Handle of the pool that a device begins with.
pub(crate) fn default_pool(ordinal: c_int) -> Result<*mut c_void, Status> {
    let (ordinal, _) = checked(ordinal)?;
    let known = DEFAULT[ordinal].load(Ordering::Acquire);
    if known != 0 {
        return Ok(known as *mut c_void);
    }
    let fresh = POOLS.insert_shared(pool::default_of(ordinal));
    let own =
        DEFAULT[ordinal].compare_exchange(0, fresh as usize, Ordering::AcqRel, Ordering::Acquire);
    Ok(own.map_or_else(|other| other as *mut c_void, |_| fresh))
}

/// Handle of the pool that a device allocates from.
pub(crate) fn current_pool(ordinal: c_int) -> Result<*mut c_void, Status> {
    let (index, _) = checked(ordinal)?;
    match CURRENT[index].load(Ordering::Acquire) {
        0 => default_pool(ordinal),
        handle if POOLS.get(handle as *mut c_void).is_some() => Ok(handle as *mut c_void),
        _ => default_pool(ordinal),
    }
}

/// Has a device allocate from a pool of its own.
pub(crate) fn set_current_pool(ordinal: c_int, handle: *mut c_void) -> Result<(), Status> {
    let (ordinal, _) = checked(ordinal)?;
    if pool(handle)?.ordinal != ordinal {
        return Err(INVALID_VALUE);
    }
    CURRENT[ordinal].store(handle as usize, Ordering::Release);
    Ok(())
}

/// Allocates in order with `on`, from the pool `from` or, without one, its device's.
pub(crate) fn allocate_ordered(
    bytes: usize,
    from: Option<*mut c_void>,
    on: *mut c_void,
) -> Result<*mut c_void, Status> {
    ready()?;
    let ordinal = stream(on)?.ordinal;
    let pool = pool(match from {
        Some(handle) => handle,
        None => current_pool(ordinal as c_int)?,
    })?;
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let address = match capture::allocate(on, bytes as u64)? {
        Some(address) => address,
        None => pool.allocate(bytes as u64)?,
    };
    Ok(address as *mut c_void)
}

/// Frees in order with `on`.
pub(crate) fn free_ordered(pointer: *mut c_void, on: *mut c_void) -> Result<(), Status> {
    ready()?;
    stream(on)?;
    if pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    let address = pointer as u64;
    let freed = capture::free(on, address)?
        || pool::free(address)
        || memory::graph::free(address)
        || memory::free(pointer);
    if freed { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Reads an attribute into `value`: the first three are an `int`, the others 64 bits.
pub(crate) fn attribute(
    handle: *mut c_void,
    which: c_int,
    value: *mut c_void,
) -> Result<(), Status> {
    let found = pool(handle)?.attribute(which).filter(|_| !value.is_null()).ok_or(INVALID_VALUE)?;
    // SAFETY: not null; the manual gives the width of each attribute, and the caller provides as much.
    unsafe {
        if which <= 3 {
            value.cast::<c_int>().write_unaligned(found as c_int);
        } else {
            value.cast::<u64>().write_unaligned(found);
        }
    }
    Ok(())
}

/// Sets an attribute from `value`.
pub(crate) fn set_attribute(
    handle: *mut c_void,
    which: c_int,
    value: *const c_void,
) -> Result<(), Status> {
    let pool = pool(handle)?;
    if value.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as in `attribute`.
    let value = unsafe {
        if which <= 3 {
            value.cast::<c_int>().read_unaligned() as u64
        } else {
            value.cast::<u64>().read_unaligned()
        }
    };
    if pool.set_attribute(which, value) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Ends a pool. A device's own stays.
pub(crate) fn destroy_pool(handle: *mut c_void) -> Result<(), Status> {
    if DEFAULT.iter().any(|it| it.load(Ordering::Acquire) == handle as usize) {
        return Err(INVALID_VALUE);
    }
    pool::destroy(&*pool(handle)?);
    POOLS.remove(handle);
    Ok(())
}

/// The beginning of `cudaMemPoolProps` and `CUmemPoolProps`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PoolProperties {
    allocation: c_int,
    handle_types: c_int,
    location: c_int,
    ordinal: c_int,
}

/// Makes a pool as described.
pub(crate) fn create_as(properties: In<PoolProperties>) -> Result<*mut c_void, Status> {
    let properties = properties.get().ok_or(INVALID_VALUE)?;
    // Memory of a device, pinned, for this process alone.
    if (properties.allocation, properties.location) != (1, 1) || properties.handle_types != 0 {
        activity::not_implemented(
            "cudaMemPoolCreate for other than a device's memory, or to share",
        );
        return Err(NOT_SUPPORTED);
    }
    let (ordinal, _) = checked(properties.ordinal)?;
    Ok(POOLS.insert_shared(Pool::new(ordinal)))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Allocates in order with a stream.
    fn cudaMallocAsync(pointer: Out<*mut c_void>, bytes: usize, on: *mut c_void) -> Status {
        status(allocate_ordered(bytes, None, on).map(|address| pointer.set(address)))
    }

    /// Allocates from a pool in order with a stream.
    fn cudaMallocFromPoolAsync(
        pointer: Out<*mut c_void>,
        bytes: usize,
        from: *mut c_void,
        on: *mut c_void,
    ) -> Status {
        status(allocate_ordered(bytes, Some(from), on).map(|address| pointer.set(address)))
    }

    /// Frees in order with a stream.
    fn cudaFreeAsync(pointer: *mut c_void, on: *mut c_void) -> Status {
        status(free_ordered(pointer, on))
    }

    /// The pool that a device begins with.
    fn cudaDeviceGetDefaultMemPool(handle: Out<*mut c_void>, ordinal: c_int) -> Status {
        status(default_pool(ordinal).map(|found| handle.set(found)))
    }

    /// The pool that a device allocates from.
    fn cudaDeviceGetMemPool(handle: Out<*mut c_void>, ordinal: c_int) -> Status {
        status(current_pool(ordinal).map(|found| handle.set(found)))
    }

    /// Has a device allocate from a pool.
    fn cudaDeviceSetMemPool(ordinal: c_int, handle: *mut c_void) -> Status {
        status(set_current_pool(ordinal, handle))
    }

    /// Makes a pool.
    fn cudaMemPoolCreate(handle: Out<*mut c_void>, properties: In<PoolProperties>) -> Status {
        status(create_as(properties).map(|made| handle.set(made)))
    }

    /// Ends a pool.
    fn cudaMemPoolDestroy(handle: *mut c_void) -> Status {
        status(destroy_pool(handle))
    }

    /// Reads an attribute of a pool.
    fn cudaMemPoolGetAttribute(handle: *mut c_void, which: c_int, value: *mut c_void) -> Status {
        status(attribute(handle, which, value))
    }

    /// Sets an attribute of a pool.
    fn cudaMemPoolSetAttribute(handle: *mut c_void, which: c_int, value: *mut c_void) -> Status {
        status(set_attribute(handle, which, value))
    }

    /// Lets other devices use a pool's memory; virtual ones can anyway.
    fn cudaMemPoolSetAccess(
        handle: *mut c_void,
        _descriptions: *const c_void,
        _count: usize,
    ) -> Status {
        status(pool(handle).map(|_| ()))
    }

    /// Gives back what a pool holds beyond `keep` bytes and does not use.
    fn cudaMemPoolTrimTo(handle: *mut c_void, keep: usize) -> Status {
        status(pool(handle).map(|pool| pool.trim(keep as u64)))
    }
}
