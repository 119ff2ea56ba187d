//! Copies and memsets: small ones are done, large ones skipped, and what the host reads back without
//! ever having written it is noted.

use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::{activity, address_space, memory};

/// Largest transfer that really happens, in bytes. Enough for scalars, shapes, indices and flags,
/// small enough that a model's weights never take host memory.
pub(crate) const LIMIT: usize = 64 << 10;

/// Ranges of device memory written from the host since the last kernel: only these are known to hold
/// what the program thinks they hold.
#[derive(Default)]
struct HostWritten {
    launches: u64,
    ranges: Vec<(u64, u64)>,
}

static HOST_WRITTEN: LazyLock<Mutex<HostWritten>> = LazyLock::new(Default::default);

/// Notes that `bytes` bytes from device address `start` on now hold their true value.
pub(crate) fn wrote(start: u64, bytes: u64) {
    let mut written = HOST_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let launches = activity::launches();
    if written.launches != launches {
        written.launches = launches;
        written.ranges.clear();
    }
    written.ranges.push((start, start + bytes));
}

/// Notes that what `bytes` bytes from device address `start` on hold is no longer known.
fn lost(start: u64, bytes: u64) {
    let mut written = HOST_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written.ranges.retain(|(from, to)| *to <= start || start + bytes <= *from);
}

/// Whether any kernel may have changed what the host wrote to this range, or the host never did.
fn is_computed(start: u64, bytes: u64) -> bool {
    let mut written = HOST_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    if written.launches != activity::launches() {
        return true;
    }
    written.ranges.sort_unstable();
    let mut covered = start;
    for &(from, to) in &written.ranges {
        if from <= covered {
            covered = covered.max(to);
        }
    }
    covered < start + bytes
}

/// Copies `bytes` from `source` to `target`; each may be on the host or on a device. False if a
/// device range is not allocated.
pub(crate) fn copy(target: *mut c_void, source: *const c_void, bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    let to_device = address_space::ordinal_of(target).is_some();
    let from_device = address_space::ordinal_of(source).is_some();
    if to_device && !memory::is_allocated(target, bytes as u64)
        || from_device && !memory::is_allocated(source, bytes as u64)
    {
        return false;
    }
    match (to_device, from_device) {
        (true, false) => activity::copied_to_device(bytes as u64),
        (false, true) => {
            let computed = is_computed(source as u64, bytes as u64);
            activity::copied_to_host(bytes as u64, computed);
        }
        (true, true) | (false, false) => {}
    }
    if bytes <= LIMIT || !to_device && !from_device {
        // SAFETY: device ranges are allocated, checked above; host ranges are valid by the caller's
        // promise to `cudaMemcpy`. The two may overlap.
        unsafe { std::ptr::copy(source.cast::<u8>(), target.cast::<u8>(), bytes) };
        match (to_device, from_device) {
            (true, false) => wrote(target as u64, bytes as u64),
            // It holds what the other range does, which may be a kernel's.
            (true, true) => lost(target as u64, bytes as u64),
            (false, _) => {}
        }
    } else if to_device {
        lost(target as u64, bytes as u64);
    } else {
        // The bytes were never there; zeros are at least the same on every run.
        // SAFETY: the caller promises `bytes` writable bytes on the host.
        unsafe { target.cast::<u8>().write_bytes(0, bytes) };
    }
    true
}

/// Copies `rows` rows of `width` bytes between pitched ranges.
pub(crate) fn copy_2d(
    target: *mut c_void,
    target_pitch: usize,
    source: *const c_void,
    source_pitch: usize,
    width: usize,
    rows: usize,
) -> bool {
    if width > target_pitch || width > source_pitch {
        return false;
    }
    (0..rows).all(|row| {
        let offsets = row.checked_mul(target_pitch).zip(row.checked_mul(source_pitch));
        offsets.is_some_and(|(to, from)| {
            copy(target.wrapping_byte_add(to), source.wrapping_byte_add(from), width)
        })
    })
}

/// Sets `bytes` bytes from `target` on to `value`. False if a device range is not allocated.
pub(crate) fn set(target: *mut c_void, value: u8, bytes: usize) -> bool {
    let on_device = address_space::ordinal_of(target).is_some();
    if on_device && !memory::is_allocated(target, bytes as u64) {
        return false;
    }
    if !on_device || bytes <= LIMIT {
        // SAFETY: a device range is allocated, checked above; a host range is valid by the caller's
        // promise to `cudaMemset`.
        unsafe { target.cast::<u8>().write_bytes(value, bytes) };
        if on_device {
            wrote(target as u64, bytes as u64);
        }
    } else {
        lost(target as u64, bytes as u64);
    }
    true
}
