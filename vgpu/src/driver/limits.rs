//! Limits of a context through the driver: the runtime's.

use std::ffi::c_int;

use super::device::code;
use crate::entry::{Out, entry_points};
use crate::runtime::status::{Status, UNKNOWN};
use crate::runtime::{get_limit, set_limit};

entry_points! {
    on_panic = UNKNOWN;

    /// One limit of the current context.
    fn cuCtxGetLimit(bytes: Out<usize>, which: c_int) -> Status {
        code(get_limit(bytes, which))
    }

    /// Sets one limit of the current context.
    fn cuCtxSetLimit(which: c_int, bytes: usize) -> Status {
        code(set_limit(which, bytes))
    }
}
