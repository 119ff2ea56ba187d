//! Driver functions by name: how PyTorch gets at them without linking the driver.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use super::status::{SYMBOL_NOT_FOUND, Status, UNKNOWN, status};
use crate::entry::{In, Out, entry_points};
use crate::{own_library, stubs};

/// The driver function `name`. Where it has a later version, that one: programs ask for the plain name.
pub(crate) fn driver_function(name: &str) -> Option<*mut c_void> {
    if !name.starts_with("cu") {
        return None;
    }
    let versions = ["_v4", "_v3", "_v2", ""].map(|version| format!("{name}{version}"));
    // A version that works goes before a newer one that only refuses.
    let mut working = versions.iter().filter(|version| !stubs::is_stub(version));
    working
        .find_map(|version| own_library::symbol(version))
        .or_else(|| versions.iter().find_map(|version| own_library::symbol(version)))
}

/// `cudaDriverEntryPointSuccess`, `cudaDriverEntryPointSymbolNotFound`.
const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;

fn look_up(name: In<c_char>, function: Out<*mut c_void>, outcome: Out<c_int>) -> Status {
    let found = driver_function(name.text());
    function.set(found.unwrap_or(std::ptr::null_mut()));
    outcome.set(if found.is_some() { FOUND } else { NOT_FOUND });
    // A caller that asks for the outcome reads the failure there.
    status(if found.is_some() || !outcome.is_null() { Ok(()) } else { Err(SYMBOL_NOT_FOUND) })
}

entry_points! {
    on_panic = UNKNOWN;

    /// A driver function by name and CUDA version.
    fn cudaGetDriverEntryPointByVersion(
        name: In<c_char>,
        function: Out<*mut c_void>,
        _version: c_uint,
        _flags: c_ulonglong,
        outcome: Out<c_int>,
    ) -> Status {
        look_up(name, function, outcome)
    }

    /// A driver function by name: CUDA 12's way.
    fn cudaGetDriverEntryPoint(
        name: In<c_char>,
        function: Out<*mut c_void>,
        _flags: c_ulonglong,
        outcome: Out<c_int>,
    ) -> Status {
        look_up(name, function, outcome)
    }
}
