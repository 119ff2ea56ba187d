//! The process: its standard output, libtorch's CUDA half, and its end.

use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Lets the kernel end this process together with the thread that started it, however that ends: a
/// step that hangs would never notice that standard input has. A parent that is gone already needs
/// no signal, since then the first read finds that end.
///
/// # Errors
/// The operating system's.
pub(crate) fn end_with_parent() -> io::Result<()> {
    // SAFETY: this option reads one number and touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

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

unsafe extern "C" {
    /// glibc's `atexit` whose function is told the exit status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Lets the process end without the destructors of the libraries loaded so far: libtorch takes a
/// quarter of a second to forget its operators one by one. What registers its end later, as the
/// virtual GPU does on first use, still runs.
pub(crate) fn skip_destructors() {
    extern "C" fn end(status: c_int, _argument: *mut c_void) {
        // SAFETY: flushing all of C's streams and ending the process are allowed at any time.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(status)
        }
    }
    // SAFETY: the function lives as long as the process and uses no argument. Where it cannot be
    // registered, the process ends as it always did.
    let _ = unsafe { on_exit(end, std::ptr::null_mut()) };
}
