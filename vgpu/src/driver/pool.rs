//! The stream-ordered allocator through the driver: the runtime's.

use std::ffi::{c_int, c_void};

use super::device::code;
use crate::entry::{In, Out, entry_points};
use crate::runtime::pool::{
    PoolProperties, allocate_ordered, attribute, create_as, current_pool, default_pool,
    destroy_pool, free_ordered, pool, set_attribute, set_current_pool,
};
use crate::runtime::status::{Status, UNKNOWN};

entry_points! {
    on_panic = UNKNOWN;

    /// Allocates in order with a stream.
    fn cuMemAllocAsync(pointer: Out<*mut c_void>, bytes: usize, on: *mut c_void) -> Status {
        code(allocate_ordered(bytes, None, on).map(|address| pointer.set(address)))
    }

    /// Allocates from a pool in order with a stream.
    fn cuMemAllocFromPoolAsync(
        pointer: Out<*mut c_void>,
        bytes: usize,
        from: *mut c_void,
        on: *mut c_void,
    ) -> Status {
        code(allocate_ordered(bytes, Some(from), on).map(|address| pointer.set(address)))
    }

    /// Frees in order with a stream.
    fn cuMemFreeAsync(pointer: *mut c_void, on: *mut c_void) -> Status {
        code(free_ordered(pointer, on))
    }

    /// The pool that a device begins with.
    fn cuDeviceGetDefaultMemPool(handle: Out<*mut c_void>, ordinal: c_int) -> Status {
        code(default_pool(ordinal).map(|found| handle.set(found)))
    }

    /// The pool that a device allocates from.
    fn cuDeviceGetMemPool(handle: Out<*mut c_void>, ordinal: c_int) -> Status {
        code(current_pool(ordinal).map(|found| handle.set(found)))
    }

    /// Has a device allocate from a pool.
    fn cuDeviceSetMemPool(ordinal: c_int, handle: *mut c_void) -> Status {
        code(set_current_pool(ordinal, handle))
    }

    /// Makes a pool.
    fn cuMemPoolCreate(handle: Out<*mut c_void>, properties: In<PoolProperties>) -> Status {
        code(create_as(properties).map(|made| handle.set(made)))
    }

    /// Ends a pool.
    fn cuMemPoolDestroy(handle: *mut c_void) -> Status {
        code(destroy_pool(handle))
    }

    /// Reads an attribute of a pool.
    fn cuMemPoolGetAttribute(handle: *mut c_void, which: c_int, value: *mut c_void) -> Status {
        code(attribute(handle, which, value))
    }

    /// Sets an attribute of a pool.
    fn cuMemPoolSetAttribute(handle: *mut c_void, which: c_int, value: *mut c_void) -> Status {
        code(set_attribute(handle, which, value))
    }

    /// Lets other devices use a pool's memory; virtual ones can anyway.
    fn cuMemPoolSetAccess(
        handle: *mut c_void,
        _descriptions: *const c_void,
        _count: usize,
    ) -> Status {
        code(pool(handle).map(|_| ()))
    }

    /// Gives back what a pool holds beyond `keep` bytes and does not use.
    fn cuMemPoolTrimTo(handle: *mut c_void, keep: usize) -> Status {
        code(pool(handle).map(|pool| pool.trim(keep as u64)))
    }
}
