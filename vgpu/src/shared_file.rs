//! A file of the virtual GPU's folder that processes share their memory through.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Opens the file, which whoever comes first makes, and maps `length` bytes of it, shared and page-
/// aligned, at an address of the kernel's choice. What nobody has written yet is zero, and only what
/// is touched takes memory. The mapping is the caller's to undo.
pub(crate) fn map(path: &Path, length: usize) -> io::Result<(File, *mut c_void)> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    if file.metadata()?.len() < length as u64 {
        file.set_len(length as u64)?;
    }
    // SAFETY: a shared mapping of `length` bytes of a file at least that long.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    match address {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        address => Ok((file, address)),
    }
}
