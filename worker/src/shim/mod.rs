//! What the worker needs of libtorch and tch does not have: allocator statistics, autocast without
//! deprecated calls, operators over lists of tensors, checkpointing. The only unsafe code of the
//! worker; each foreign function has one safe wrapper, which cannot be called without its error
//! check.

pub(crate) mod autocast;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod device;
pub(crate) mod foreach;
pub(crate) mod process;

use std::ffi::{CStr, c_char, c_int};

use tch::TchError;

// SAFETY: the signature is that of shim/device.cpp.
unsafe extern "C" {
    fn vf_error() -> *const c_char;
}

/// Turns the status of a foreign function into the error that it kept.
fn check(status: c_int) -> Result<(), TchError> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: `vf_error` returns a string that lives until this thread's next failure.
    let text = unsafe { CStr::from_ptr(vf_error()) };
    Err(TchError::Torch(text.to_string_lossy().into_owned()))
}
