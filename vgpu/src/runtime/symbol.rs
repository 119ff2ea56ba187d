//! Device variables (`__device__`, `__constant__`): each has a place in host memory here.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::status::{INVALID_VALUE, Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};

/// Registered size in bytes, and the place once it was asked for.
struct Variable {
    bytes: usize,
    place: Option<Box<[u8]>>,
}

static VARIABLES: LazyLock<Mutex<HashMap<usize, Variable>>> = LazyLock::new(Default::default);

/// Notes a device variable of `bytes` bytes.
pub(super) fn register(variable: *const c_void, bytes: usize) {
    let mut variables = VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
    variables.insert(variable as usize, Variable { bytes, place: None });
}

/// Runs `body` on the bytes of a variable.
fn with_place<R>(variable: *const c_void, body: impl FnOnce(&mut [u8]) -> R) -> Result<R, Status> {
    let mut variables = VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let variable = variables.get_mut(&(variable as usize)).ok_or(INVALID_VALUE)?;
    let bytes = variable.bytes;
    Ok(body(variable.place.get_or_insert_with(|| vec![0; bytes].into())))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Address of a variable.
    fn cudaGetSymbolAddress(address: Out<*mut c_void>, variable: *const c_void) -> Status {
        status(with_place(variable, |place| address.set(place.as_mut_ptr().cast())))
    }

    /// Size of a variable.
    fn cudaGetSymbolSize(bytes: Out<usize>, variable: *const c_void) -> Status {
        status(with_place(variable, |place| bytes.set(place.len())))
    }

    /// Writes a variable.
    fn cudaMemcpyToSymbol(
        variable: *const c_void,
        source: *const c_void,
        bytes: usize,
        offset: usize,
        _kind: c_int,
    ) -> Status {
        let copied = with_place(variable, |place| {
            let target = offset.checked_add(bytes).and_then(|end| place.get_mut(offset..end))?;
            // SAFETY: the caller promises `bytes` readable bytes; the target is as long.
            unsafe { target.as_mut_ptr().copy_from(source.cast(), bytes) };
            Some(())
        });
        status(copied.and_then(|copied| copied.ok_or(INVALID_VALUE)))
    }
}
