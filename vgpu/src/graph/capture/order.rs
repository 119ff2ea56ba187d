//! The order of work on different streams, which events make: so streams join a capture.

use std::ffi::c_void;

use super::{any, entered, invalidate, is_legacy, lock};
use crate::runtime::status::{
    CAPTURED_EVENT, STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_ISOLATION, STREAM_CAPTURE_MERGE,
    Status,
};

/// What an event that was recorded in a capture stands for.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(super) capture: u64,
    after: Vec<usize>,
}

/// What an event recorded on `stream` stands for: none outside of a capture.
pub(crate) fn mark(stream: *mut c_void) -> Result<Option<Mark>, Status> {
    if any()
        && let Some(capture) = entered(&mut lock(), stream)?
    {
        let after = capture.streams[&(stream as usize)].after.clone();
        return Ok(Some(Mark { capture: capture.id, after }));
    }
    Ok(None)
}

/// Has `stream` wait for an event, which stands for `mark`: so it joins that capture.
pub(crate) fn wait(stream: *mut c_void, mark: Option<&Mark>) -> Result<(), Status> {
    if !any() {
        return if mark.is_some() { Err(CAPTURED_EVENT) } else { Ok(()) };
    }
    let mut captures = lock();
    let own = entered(&mut captures, stream)?.map(|it| it.id);
    let Some(mark) = mark else {
        // What happened outside of the capture cannot be waited for within.
        return match own {
            Some(id) => Err(invalidate(&mut captures, id, STREAM_CAPTURE_ISOLATION)),
            None => Ok(()),
        };
    };
    let Some(capture) = captures.iter_mut().find(|it| it.id == mark.capture) else {
        return Err(own
            .map_or(CAPTURED_EVENT, |id| invalidate(&mut captures, id, STREAM_CAPTURE_ISOLATION)));
    };
    if capture.invalidated {
        return Err(STREAM_CAPTURE_INVALIDATED);
    }
    if is_legacy(stream) || own.is_some_and(|id| id != mark.capture) {
        capture.invalidated = true;
        return Err(STREAM_CAPTURE_MERGE);
    }
    let tip = capture.streams.entry(stream as usize).or_default();
    for node in &mark.after {
        if !tip.after.contains(node) {
            tip.after.push(*node);
        }
    }
    Ok(())
}
