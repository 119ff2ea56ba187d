//! Events: marks in a stream, and the time between two.

use std::ffi::{c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use super::device::ready;
use super::status::{
    CAPTURED_EVENT, INVALID_RESOURCE_HANDLE, INVALID_VALUE, Status, UNKNOWN, status,
};
use super::stream::stream;
use crate::clock::{self, Record};
use crate::entry::{Out, entry_points};
use crate::graph::{Kind, Recorded, Step, capture};
use crate::handles::Handles;
use crate::memory::pool;
use crate::nccl::watchdog;

/// An event of a program.
pub(super) struct Event {
    /// When, if it was ever recorded.
    recorded: Recorded,
    flags: c_uint,
    /// What it stands for if it was recorded in a capture.
    mark: Mutex<Option<capture::Mark>>,
}

/// Bits of an event's flags.
const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;
/// Bit of the flags of a record or a wait: in a capture it becomes a node instead of an order.
const EXTERNAL: c_uint = 1;

/// All live events.
static EVENTS: Handles<Event> = Handles::new();

/// The event behind `handle`.
fn event(handle: *mut c_void) -> Result<Arc<Event>, Status> {
    EVENTS.get(handle).ok_or(INVALID_RESOURCE_HANDLE)
}

impl Event {
    fn new(recorded: Option<Record>, flags: c_uint) -> Self {
        Self { recorded: Arc::new(Mutex::new(recorded)), flags, mark: Mutex::new(None) }
    }

    fn recorded(&self) -> Option<Record> {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_recorded(&self, record: Record) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }

    fn mark(&self) -> Option<capture::Mark> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_mark(&self, mark: Option<capture::Mark>) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }
}

/// Events tell times half a microsecond apart (the manual of `cudaEventElapsedTime`): who divides by the time
/// of nothing does not divide by zero.
const RESOLUTION_NANOSECONDS: i64 = 500;

fn elapsed(start: &Event, end: &Event) -> Result<f32, Status> {
    if (start.flags | end.flags) & DISABLE_TIMING != 0 {
        return Err(INVALID_RESOURCE_HANDLE);
    }
    if start.mark().is_some() || end.mark().is_some() {
        return Err(CAPTURED_EVENT);
    }
    let (Some(from), Some(to)) = (start.recorded(), end.recorded()) else {
        return Err(INVALID_RESOURCE_HANDLE);
    };
    let nanoseconds = match from.until(&to) {
        0 if !Arc::ptr_eq(&start.recorded, &end.recorded) => RESOLUTION_NANOSECONDS,
        found => found,
    };
    Ok((nanoseconds as f64 / 1e6) as f32)
}

fn create(handle: Out<*mut c_void>, flags: c_uint) -> Result<(), Status> {
    ready()?;
    if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
        return Err(INVALID_VALUE);
    }
    handle.set(EVENTS.insert(Event::new(None, flags)));
    Ok(())
}

fn record(handle: *mut c_void, on: *mut c_void, flags: c_uint) -> Result<(), Status> {
    stream(on)?;
    let event = event(handle)?;
    if flags & EXTERNAL != 0 {
        event.set_mark(None);
        let step = Step::Record(Arc::clone(&event.recorded));
        if !capture::take(on, Kind::RecordEvent, "cudaEventRecord", step, || ())? {
            event.set_recorded(clock::record(on));
        }
        return Ok(());
    }
    let mark = capture::mark(on)?;
    if mark.is_none() {
        watchdog::recorded(handle as usize, on as usize);
        event.set_recorded(clock::record(on));
    }
    event.set_mark(mark);
    Ok(())
}

/// Has stream `on` wait for an event.
pub(super) fn wait_on(on: *mut c_void, handle: *mut c_void, flags: c_uint) -> Result<(), Status> {
    stream(on)?;
    let event = event(handle)?;
    if flags & EXTERNAL != 0 {
        let step = Step::Await(Arc::clone(&event.recorded));
        if capture::take(on, Kind::WaitEvent, "cudaStreamWaitEvent", step, || ())? {
            return Ok(());
        }
    }
    // Who waits for what was never recorded waits for nothing.
    let mark = event.mark();
    let recorded = event.recorded();
    if mark.is_none() && recorded.is_none() {
        return Ok(());
    }
    capture::wait(on, mark.as_ref())?;
    if mark.is_none()
        && let Some(record) = recorded
    {
        clock::wait(on, record.moment);
    }
    Ok(())
}

/// `cudaIpcEventHandle_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcEvent([u8; 64]);

/// Marks a handle of this library. Nothing follows: whatever was recorded has happened.
const IPC_EVENT: [u8; 8] = *b"vramfitE";

entry_points! {
    on_panic = UNKNOWN;

    /// Makes an event.
    fn cudaEventCreate(handle: Out<*mut c_void>) -> Status {
        status(create(handle, 0))
    }

    /// Makes an event.
    fn cudaEventCreateWithFlags(handle: Out<*mut c_void>, flags: c_uint) -> Status {
        status(create(handle, flags))
    }

    /// Ends an event.
    fn cudaEventDestroy(handle: *mut c_void) -> Status {
        watchdog::destroyed(handle as usize);
        status(if EVENTS.remove(handle) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) })
    }

    /// Marks this moment.
    fn cudaEventRecord(handle: *mut c_void, on: *mut c_void) -> Status {
        status(record(handle, on, 0))
    }

    /// Marks this moment.
    fn cudaEventRecordWithFlags(
        handle: *mut c_void,
        on: *mut c_void,
        flags: c_uint,
    ) -> Status {
        status(record(handle, on, flags))
    }

    /// Whether an event has happened: it has.
    fn cudaEventQuery(handle: *mut c_void) -> Status {
        watchdog::queried(handle as usize);
        status(event(handle).and_then(|event| capture::forbid_captured(event.mark().as_ref())))
    }

    /// Waits for an event.
    fn cudaEventSynchronize(handle: *mut c_void) -> Status {
        status(event(handle).and_then(|event| {
            capture::forbid_captured(event.mark().as_ref())?;
            watchdog::synchronize();
            if let Some(record) = event.recorded() {
                clock::synchronize(record.moment);
            }
            pool::synchronized();
            Ok(())
        }))
    }

    /// Milliseconds of virtual time between two events.
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

    /// How another process names an event.
    fn cudaIpcGetEventHandle(answer: Out<IpcEvent>, handle: *mut c_void) -> Status {
        status(event(handle).and_then(|event| {
            if event.flags & INTERPROCESS == 0 {
                return Err(INVALID_RESOURCE_HANDLE);
            }
            let mut bytes = [0; 64];
            bytes[..8].copy_from_slice(&IPC_EVENT);
            answer.set(IpcEvent(bytes));
            Ok(())
        }))
    }

    /// Another process's event, by the name that it gave.
    fn cudaIpcOpenEventHandle(handle: Out<*mut c_void>, name: IpcEvent) -> Status {
        status(ready().and_then(|_| {
            if !name.0.starts_with(&IPC_EVENT) {
                return Err(INVALID_VALUE);
            }
            let flags = DISABLE_TIMING | INTERPROCESS;
            handle.set(EVENTS.insert(Event::new(Some(clock::record(std::ptr::null_mut())), flags)));
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_between_events_from_the_earlier_to_the_later() {
        let event = |moment| Event::new(Some(Record::at(moment)), 0);
        assert_eq!(elapsed(&event(1), &event(2_000_001)), Ok(2.0));
        assert_eq!(elapsed(&event(2_000_001), &event(1)), Ok(-2.0));
        let late = 1 << 60;
        assert_eq!(elapsed(&event(late), &event(late + 250)), Ok(0.00025));
        assert_eq!(elapsed(&event(late), &event(late)), Ok(0.0005), "of nothing, but positive");
        let (never, untimed) = (Event::new(None, 0), Event::new(None, DISABLE_TIMING));
        assert_eq!(elapsed(&never, &event(1)), Err(INVALID_RESOURCE_HANDLE));
        assert_eq!(elapsed(&untimed, &event(1)), Err(INVALID_RESOURCE_HANDLE));
    }
}
