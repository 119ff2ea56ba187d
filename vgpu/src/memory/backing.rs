//! The host memory behind device memory: a file in memory for each device, of which pages exist only
//! where a small value was written. A file, not an anonymous mapping, so that another process can be
//! given a part of it (CUDA IPC).

use std::ffi::c_void;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, PoisonError};

use vramfit_vgpu_schema::Description;

use crate::address_space::SHIFT;

/// Where in the file what is allocated without an address begins: behind all that has one.
pub(super) const PHYSICAL: u64 = 1 << SHIFT;
/// Length of the file.
pub(super) const LENGTH: u64 = 2 << SHIFT;

static FILES: Mutex<[Option<&'static File>; Description::MAX_DEVICES]> =
    Mutex::new([None; Description::MAX_DEVICES]);

/// The file of CUDA ordinal `ordinal`.
pub(super) fn file(ordinal: usize) -> Result<&'static File> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = files[ordinal] {
        return Ok(file);
    }
    // SAFETY: the name is zero-terminated.
    let descriptor = unsafe { libc::memfd_create(c"vramfit-vgpu".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now and nobody else has it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.set_len(LENGTH)?;
    Ok(files[ordinal].insert(Box::leak(Box::new(file))))
}

/// Makes `bytes` bytes of `file` from `offset` on readable and writable at `address`.
pub(super) fn map(address: u64, bytes: u64, file: &File, offset: u64) -> Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let (length, offset) = (bytes as usize, offset as libc::off_t);
    // SAFETY: MAP_FIXED_NOREPLACE never touches an existing mapping; the range is the caller's.
    let mapped = unsafe {
        libc::mmap(address as *mut c_void, length, protection, flags, file.as_raw_fd(), offset)
    };
    if mapped as u64 == address {
        return Ok(());
    }
    let error = Error::last_os_error();
    if mapped != libc::MAP_FAILED {
        // A kernel older than 4.17 takes the address as a hint and may map elsewhere.
        // SAFETY: this mapping was made just now and nobody else knows of it.
        unsafe { libc::munmap(mapped, length) };
        return Err(Error::from(ErrorKind::AddrInUse));
    }
    Err(error)
}

/// Undoes [`map`].
pub(super) fn unmap(address: u64, bytes: u64) {
    // SAFETY: the range was mapped by `map` and is owned by the caller, who gives it up.
    unsafe { libc::munmap(address as *mut c_void, bytes as usize) };
}

/// Gives the host back what `bytes` bytes of `file` from `offset` on take; they read as zeros again.
pub(super) fn discard(file: &File, offset: u64, bytes: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open; a failure keeps pages that nobody will read as if they were new.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, bytes as libc::off_t) };
}
