//! The driver's own log of errors, of which a virtual driver has none: who listens hears nothing.

use std::ffi::{c_uint, c_void};

use super::device::code;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;
use crate::runtime::status::{INVALID_VALUE, Status, UNKNOWN};

static LISTENERS: Handles<()> = Handles::new();

entry_points! {
    on_panic = UNKNOWN;

    /// Adds a listener.
    fn cuLogsRegisterCallback(
        _callback: Option<unsafe extern "C" fn(*mut c_void, c_uint, *const u8, usize)>,
        _data: *mut c_void,
        handle: Out<*mut c_void>,
    ) -> Status {
        handle.set(LISTENERS.insert(()));
        code(Ok(()))
    }

    /// Removes a listener.
    fn cuLogsUnregisterCallback(handle: *mut c_void) -> Status {
        code(if LISTENERS.remove(handle) { Ok(()) } else { Err(INVALID_VALUE) })
    }
}
