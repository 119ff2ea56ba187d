//! Device memory shared between processes.

use std::ffi::{c_uint, c_void};

use super::device::ready;
use super::status::{DEVICE_UNINITIALIZED, INVALID_VALUE, MAP_FAILED, Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};
use crate::graph::capture;
use crate::memory::shared::{self, CannotOpen, Place};

/// `cudaIpcMemHandle_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcMemory([u8; 64]);

fn open(handle: IpcMemory) -> Result<*mut c_void, Status> {
    ready()?;
    capture::forbid_unsafe()?;
    let place = Place::from_bytes(&handle.0).ok_or(INVALID_VALUE)?;
    shared::open(place).map_err(|reason| match reason {
        CannotOpen::Own => DEVICE_UNINITIALIZED,
        CannotOpen::Invalid => MAP_FAILED,
    })
}

entry_points! {
    on_panic = UNKNOWN;

    /// How another process names the allocation that holds a pointer.
    fn cudaIpcGetMemHandle(handle: Out<IpcMemory>, pointer: *mut c_void) -> Status {
        let place = ready().and_then(|_| shared::place_of(pointer).ok_or(INVALID_VALUE));
        status(place.map(|place| handle.set(IpcMemory(place.to_bytes()))))
    }

    /// Opens another process's allocation. It stays charged to that one.
    fn cudaIpcOpenMemHandle(
        pointer: Out<*mut c_void>,
        handle: IpcMemory,
        _flags: c_uint,
    ) -> Status {
        pointer.set(std::ptr::null_mut());
        status(open(handle).map(|opened| pointer.set(opened)))
    }

    /// Closes it.
    fn cudaIpcCloseMemHandle(pointer: *mut c_void) -> Status {
        let closed = ready().and_then(|_| capture::forbid_unsafe()).and_then(|()| {
            if shared::close(pointer) { Ok(()) } else { Err(INVALID_VALUE) }
        });
        status(closed)
    }
}
