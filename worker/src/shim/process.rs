//! The process: its standard output and libtorch's CUDA half.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Takes standard output for the replies alone: whatever else writes to it from now on, libtorch
/// and CUDA among it, goes to standard error.
///
/// # Errors
/// When the descriptors cannot be duplicated.
pub(crate) fn claim_stdout() -> io::Result<File> {
    let stdout = io::stdout();
    let replies = File::from(stdout.as_fd().try_clone_to_owned()?);
    // SAFETY: both descriptors are open for the life of the process.
    if unsafe { libc::dup2(io::stderr().as_raw_fd(), stdout.as_raw_fd()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(replies)
}

/// Opens libtorch's CUDA half, which no symbol of this binary names, so that the linker dropped
/// it. Without effect where PyTorch was built for the CPU alone.
///
/// # Errors
/// The dynamic linker's reason.
pub(crate) fn load_libtorch_cuda() -> Result<(), String> {
    // SAFETY: opening runs the library's initialisers, which expect to run before any use of it.
    let handle =
        unsafe { libc::dlopen(c"libtorch_cuda.so".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: after a failed dlopen, dlerror gives a string that lives until the next call.
    let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
    Err(reason.to_string_lossy().into_owned())
}
