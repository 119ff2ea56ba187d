//! Events: marks in a stream, and the time between two.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::device::ready;
use super::status::{INVALID_RESOURCE_HANDLE, Status, UNKNOWN, status};
use super::stream::stream;
use crate::activity;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;

/// Kernels launched when the event was recorded, plus one; 0 if it never was.
pub(super) struct Event(AtomicU64);

/// All live events.
static EVENTS: Handles<Event> = Handles::new();

/// The event behind `handle`.
pub(super) fn event(handle: *mut c_void) -> Result<Arc<Event>, Status> {
    EVENTS.get(handle).ok_or(INVALID_RESOURCE_HANDLE)
}

impl Event {
    /// An event that was not recorded.
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

/// No kernel runs, so no time passes on the device. Programs that time themselves (autotuners,
/// `cudnn.benchmark`) still need an answer that is positive and the same on every run: each launch
/// counts as a tenth of a millisecond. Nothing in vramfit reports it.
const MILLISECONDS_PER_LAUNCH: f32 = 0.1;

fn elapsed(start: &Event, end: &Event) -> Result<f32, Status> {
    let (start, end) = (start.0.load(Ordering::Relaxed), end.0.load(Ordering::Relaxed));
    if start == 0 || end == 0 {
        return Err(INVALID_RESOURCE_HANDLE);
    }
    // Subtracted as integers: after some million launches a float no longer counts single ones.
    Ok((end as i64 - start as i64) as f32 * MILLISECONDS_PER_LAUNCH)
}

fn create(handle: Out<*mut c_void>) -> Status {
    status(ready().map(|_| handle.set(EVENTS.insert(Event::new()))))
}

fn record(handle: *mut c_void, on: *mut c_void) -> Status {
    status(stream(on).and(event(handle)).map(|event| {
        event.0.store(activity::launches() + 1, Ordering::Relaxed);
    }))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Makes an event.
    fn cudaEventCreate(handle: Out<*mut c_void>) -> Status {
        create(handle)
    }

    /// Makes an event.
    fn cudaEventCreateWithFlags(handle: Out<*mut c_void>, _flags: c_uint) -> Status {
        create(handle)
    }

    /// Ends an event.
    fn cudaEventDestroy(handle: *mut c_void) -> Status {
        status(if EVENTS.remove(handle) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) })
    }

    /// Marks this moment.
    fn cudaEventRecord(handle: *mut c_void, on: *mut c_void) -> Status {
        record(handle, on)
    }

    /// Marks this moment.
    fn cudaEventRecordWithFlags(
        handle: *mut c_void,
        on: *mut c_void,
        _flags: c_uint,
    ) -> Status {
        record(handle, on)
    }

    /// Whether an event has happened: it has.
    fn cudaEventQuery(handle: *mut c_void) -> Status {
        status(event(handle).map(|_| ()))
    }

    /// Waits for an event.
    fn cudaEventSynchronize(handle: *mut c_void) -> Status {
        status(event(handle).map(|_| ()))
    }

    /// Milliseconds between two events.
    fn cudaEventElapsedTime(
        milliseconds: Out<f32>,
        start: *mut c_void,
        end: *mut c_void,
    ) -> Status {
        status(event(start).and_then(|start| {
            milliseconds.set(elapsed(&start, &*event(end)?)?);
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_takes_the_same_time_however_many_came_before() {
        let event = |launches| Event(AtomicU64::new(launches));
        assert_eq!(elapsed(&event(1), &event(3)).ok(), Some(0.2));
        let late = 1 << 40;
        assert_eq!(elapsed(&event(late), &event(late + 1)).ok(), Some(0.1));
        assert_eq!(elapsed(&event(0), &event(1)), Err(INVALID_RESOURCE_HANDLE));
    }
}
