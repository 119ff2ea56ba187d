//! Copies and memsets: small ones are done, large ones skipped, and what the host reads back without
//! ever having written it is noted.

use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::{activity, address_space, memory, python};

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

/// Counts a launch, by `count`, that would write nothing but what [`write()`] is told of: what the host
/// wrote elsewhere is still known.
pub(crate) fn launch_of_known_effect(count: impl FnOnce()) {
    let mut written = HOST_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    let current = written.launches == activity::launches();
    count();
    if current {
        written.launches = activity::launches();
    }
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

/// Whether a range holds what the program thinks it holds.
pub(crate) fn is_known(start: *const c_void, bytes: usize) -> bool {
    address_space::ordinal_of(start).is_none() || !is_computed(start as u64, bytes as u64)
}

/// Reads from a host or a device range; what is not allocated reads as zeros.
pub(crate) fn read(source: *const c_void, into: &mut [u8]) {
    let on_device = address_space::ordinal_of(source).is_some();
    if source.is_null() || on_device && !memory::is_allocated(source, into.len() as u64) {
        into.fill(0);
        return;
    }
    // SAFETY: a device range is allocated, checked above; a host range is valid by the promise of the
    // caller of the entry point.
    unsafe { source.cast::<u8>().copy_to(into.as_mut_ptr(), into.len()) };
}

/// Writes a result to a host or a device range; `known` says whether it is the true one. What is not
/// allocated is left alone.
pub(crate) fn write(target: *mut c_void, bytes: &[u8], known: bool) {
    // SAFETY: as in `read`.
    write_with(target, bytes.len(), known, |target| unsafe {
        target.copy_from(bytes.as_ptr(), bytes.len());
    });
}

/// As [`write()`], of `bytes` zeros: they may be more than this process could hold a second time.
pub(crate) fn write_zeros(target: *mut c_void, bytes: usize, known: bool) {
    // SAFETY: as in `read`.
    write_with(target, bytes, known, |target| unsafe { target.write_bytes(0, bytes) });
}

fn write_with(target: *mut c_void, bytes: usize, known: bool, body: impl FnOnce(*mut u8)) {
    let on_device = address_space::ordinal_of(target).is_some();
    if target.is_null() || on_device && !memory::is_allocated(target, bytes as u64) {
        return;
    }
    body(target.cast());
    if on_device && known {
        wrote(target as u64, bytes as u64);
    } else {
        lost(target as u64, bytes as u64);
    }
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
            if let Some(count) = python::take_count(bytes) {
                activity::copied_to_host(bytes as u64, false);
                // SAFETY: the caller promises `bytes` writable bytes on the host, at most eight.
                unsafe { target.cast::<u8>().copy_from(count.as_ptr(), bytes) };
                return true;
            }
            let computed = !python::accounts() && is_computed(source as u64, bytes as u64);
            activity::copied_to_host(bytes as u64, computed);
        }
        (true, true) | (false, false) => {}
    }
    if bytes <= LIMIT || !to_device && !from_device {
        // A range copied from a kernel's result is a kernel's result.
        let known = to_device && is_known(source, bytes);
        // SAFETY: device ranges are allocated, checked above; host ranges are valid by the caller's
        // promise to `cudaMemcpy`. The two may overlap.
        unsafe { std::ptr::copy(source.cast::<u8>(), target.cast::<u8>(), bytes) };
        match (to_device, known) {
            (true, true) => wrote(target as u64, bytes as u64),
            (true, false) => lost(target as u64, bytes as u64),
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
