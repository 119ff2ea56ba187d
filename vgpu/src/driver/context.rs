//! Contexts: each device has one, its primary; a handle is its ordinal, set apart from null.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};

use super::device::code;
use crate::entry::{Out, entry_points};
use crate::runtime::status::{INVALID_VALUE, MEMORY_ALLOCATION, SUCCESS, Status, UNKNOWN};
use crate::runtime::{checked, ready, synchronize};
use crate::{device, memory};

const FIRST: usize = 0x1000;
const STEP: usize = 0x10;

/// The handle of a device's context.
pub(super) fn handle(ordinal: usize) -> *mut c_void {
    (FIRST + ordinal * STEP) as *mut c_void
}

fn ordinal_of(context: *mut c_void) -> Result<usize, Status> {
    let offset = (context as usize).checked_sub(FIRST).ok_or(INVALID_VALUE)?;
    let (ordinal, _) = checked((offset / STEP) as c_int)?;
    Ok(ordinal)
}

thread_local! {
    /// Ordinals that were current before each push.
    static PUSHED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn make(ordinal: c_int) -> Result<*mut c_void, Status> {
    let (ordinal, _) = checked(ordinal)?;
    device::make_context(ordinal).map_err(|_| MEMORY_ALLOCATION)?;
    Ok(handle(ordinal))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Whether a device's context is made.
    fn cuDevicePrimaryCtxGetState(
        ordinal: c_int,
        flags: Out<c_uint>,
        active: Out<c_int>,
    ) -> Status {
        code(checked(ordinal).map(|(ordinal, _)| {
            flags.set(0);
            active.set(c_int::from(memory::has_context(ordinal)));
        }))
    }

    /// Makes a device's context.
    fn cuDevicePrimaryCtxRetain(context: Out<*mut c_void>, ordinal: c_int) -> Status {
        code(make(ordinal).map(|made| context.set(made)))
    }

    /// Lets go of a device's context, which stays until the process ends.
    fn cuDevicePrimaryCtxRelease_v2(ordinal: c_int) -> Status {
        code(checked(ordinal).map(|_| ()))
    }

    /// The current context; null before there is one.
    fn cuCtxGetCurrent(context: Out<*mut c_void>) -> Status {
        code(ready().map(|_| {
            let ordinal = device::current();
            let made = memory::has_context(ordinal);
            context.set(if made { handle(ordinal) } else { std::ptr::null_mut() });
        }))
    }

    /// Makes a context current.
    fn cuCtxSetCurrent(context: *mut c_void) -> Status {
        if context.is_null() {
            return SUCCESS;
        }
        code(ordinal_of(context).map(device::set_current))
    }

    /// Makes a context current until it is popped.
    fn cuCtxPushCurrent_v2(context: *mut c_void) -> Status {
        code(ordinal_of(context).map(|ordinal| {
            PUSHED.with_borrow_mut(|pushed| pushed.push(device::current()));
            device::set_current(ordinal);
        }))
    }

    /// Goes back to the context that was current before the push.
    fn cuCtxPopCurrent_v2(context: Out<*mut c_void>) -> Status {
        context.set(handle(device::current()));
        if let Some(ordinal) = PUSHED.with_borrow_mut(Vec::pop) {
            device::set_current(ordinal);
        }
        SUCCESS
    }

    /// Device of the current context.
    fn cuCtxGetDevice(ordinal: Out<c_int>) -> Status {
        code(ready().map(|_| ordinal.set(device::current() as c_int)))
    }

    /// Waits for the device; nothing is ever under way.
    fn cuCtxSynchronize() -> Status {
        code(synchronize())
    }
}
