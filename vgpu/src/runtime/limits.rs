//! Limits of a context: what its kernels may use of a stack, of `printf` and of `malloc`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use vramfit_vgpu_schema::Description;

use super::device::ready;
use super::status::{INVALID_VALUE, Status, UNKNOWN, UNSUPPORTED_LIMIT, status};
use crate::entry::{Out, entry_points};
use crate::{device, local_memory};

/// `CU_LIMIT_STACK_SIZE`, of a thread.
const STACK: usize = 0;
/// Stack, `printf`'s buffer, `malloc`'s heap, in bytes: what a context begins with (CUDA runtime's
/// manual, `cudaDeviceSetLimit`; programming guide, "Formatted output" and "Heap memory allocation").
const INITIAL: [usize; 3] = [1 << 10, 1 << 20, 8 << 20];

static LIMITS: [[AtomicUsize; INITIAL.len()]; Description::MAX_DEVICES] = [const {
    [AtomicUsize::new(INITIAL[0]), AtomicUsize::new(INITIAL[1]), AtomicUsize::new(INITIAL[2])]
};
    Description::MAX_DEVICES];

fn limit(which: c_int) -> Result<&'static AtomicUsize, Status> {
    ready()?;
    let which = usize::try_from(which).map_err(|_| INVALID_VALUE)?;
    LIMITS[device::current()].get(which).ok_or(UNSUPPORTED_LIMIT)
}

/// Tells one limit (`cudaLimit`, the same numbers as `CUlimit`) of the current context.
pub(crate) fn get_limit(bytes: Out<usize>, which: c_int) -> Result<(), Status> {
    limit(which).map(|limit| bytes.set(limit.load(Ordering::Relaxed)))
}

/// Sets one limit of the current context. Room for stacks is made at once, that for `printf` and
/// `malloc` only for kernels that use them, which nobody knows here.
pub(crate) fn set_limit(which: c_int, bytes: usize) -> Result<(), Status> {
    let limit = limit(which)?;
    if which as usize == STACK {
        let bytes = u32::try_from(bytes).map_err(|_| INVALID_VALUE)?;
        local_memory::hold(device::current(), bytes)?;
    }
    limit.store(bytes, Ordering::Relaxed);
    Ok(())
}

entry_points! {
    on_panic = UNKNOWN;

    /// One limit of the current device's context.
    fn cudaDeviceGetLimit(bytes: Out<usize>, which: c_int) -> Status {
        status(get_limit(bytes, which))
    }

    /// Sets one limit of the current device's context.
    fn cudaDeviceSetLimit(which: c_int, bytes: usize) -> Status {
        status(set_limit(which, bytes))
    }
}
