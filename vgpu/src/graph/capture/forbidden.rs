//! What is forbidden while streams are captured. Who tries it makes the capture void.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use super::{Mark, any, entered, invalidate, lock, mode};
use crate::runtime::status::{CAPTURED_EVENT, STREAM_CAPTURE_UNSUPPORTED, Status};

thread_local! {
    static MODE: Cell<c_int> = const { Cell::new(mode::GLOBAL) };
}

/// Exchanges the calling thread's mode; the one before.
pub(crate) fn exchange_mode(new: c_int) -> c_int {
    MODE.replace(new)
}

/// An event that stands for `mark` cannot be asked for or waited for by the host.
pub(crate) fn forbid_captured(mark: Option<&Mark>) -> Result<(), Status> {
    match mark {
        Some(mark) => Err(invalidate(&mut lock(), mark.capture, CAPTURED_EVENT)),
        None => forbid_unsafe(),
    }
}

/// The host cannot ask for the state of a stream that is being captured, nor wait for it.
pub(crate) fn forbid_stream(stream: *mut c_void) -> Result<(), Status> {
    if !any() {
        return Ok(());
    }
    if let Some(capture) = entered(&mut lock(), stream)? {
        capture.invalidated = true;
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    forbid_unsafe()
}

/// The host cannot wait for a device with a stream that is being captured.
pub(crate) fn forbid_device(ordinal: usize) -> Result<(), Status> {
    if !any() {
        return Ok(());
    }
    let mut captures = lock();
    let mut found = Ok(());
    for capture in captures.iter_mut().filter(|it| it.ordinal == ordinal) {
        capture.invalidated = true;
        found = Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    found
}

/// Calls that may disturb a capture are forbidden to its thread, and to all if its mode is global;
/// not to a thread whose own mode is relaxed.
pub(crate) fn forbid_unsafe() -> Result<(), Status> {
    if !any() || MODE.get() == mode::RELAXED {
        return Ok(());
    }
    let own = std::thread::current().id();
    let all = MODE.get() == mode::GLOBAL;
    let mut captures = lock();
    let mut found = Ok(());
    for capture in captures.iter_mut() {
        let here = capture.thread == own && capture.mode != mode::RELAXED;
        if here || all && capture.mode == mode::GLOBAL {
            capture.invalidated = true;
            found = Err(STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    found
}
