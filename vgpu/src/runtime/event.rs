//! Events: marks in a stream, and the time between two.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vramfit_vgpu_cost::Work;

use super::device::ready;
use super::status::{
    CAPTURED_EVENT, INVALID_RESOURCE_HANDLE, INVALID_VALUE, Status, UNKNOWN, status,
};
use super::stream::stream;
use crate::activity;
use crate::entry::{Out, entry_points};
use crate::graph::{Kind, capture};
use crate::handles::Handles;
use crate::memory::pool;
use crate::nccl::watchdog;

/// An event of a program.
pub(super) struct Event {
    /// Kernels launched when it was recorded, plus one; 0 if it never was.
    moment: Arc<AtomicU64>,
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
    fn at(moment: u64, flags: c_uint) -> Self {
        Self { moment: Arc::new(AtomicU64::new(moment)), flags, mark: Mutex::new(None) }
    }

    fn mark(&self) -> Option<capture::Mark> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_mark(&self, mark: Option<capture::Mark>) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }
}

/// No kernel runs, so no time passes on the device. Programs that time themselves (autotuners,
/// `cudnn.benchmark`) still need an answer that is positive and the same on every run: each launch
/// counts as a tenth of a millisecond. Nothing in vramfit reports it.
const MILLISECONDS_PER_LAUNCH: f32 = 0.1;

fn elapsed(start: &Event, end: &Event) -> Result<f32, Status> {
    if (start.flags | end.flags) & DISABLE_TIMING != 0 {
        return Err(INVALID_RESOURCE_HANDLE);
    }
    if start.mark().is_some() || end.mark().is_some() {
        return Err(CAPTURED_EVENT);
    }
    let moment = |event: &Event| event.moment.load(Ordering::Relaxed);
    let (start, end) = (moment(start), moment(end));
    if start == 0 || end == 0 {
        return Err(INVALID_RESOURCE_HANDLE);
    }
    // Subtracted as integers: after some million launches a float no longer counts single ones.
    Ok((end as i64 - start as i64) as f32 * MILLISECONDS_PER_LAUNCH)
}

fn create(handle: Out<*mut c_void>, flags: c_uint) -> Result<(), Status> {
    ready()?;
    if flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
        return Err(INVALID_VALUE);
    }
    handle.set(EVENTS.insert(Event::at(0, flags)));
    Ok(())
}

fn record(handle: *mut c_void, on: *mut c_void, flags: c_uint) -> Result<(), Status> {
    stream(on)?;
    let event = event(handle)?;
    let moment = event.moment.clone();
    let happens = move || moment.store(activity::launches() + 1, Ordering::Relaxed);
    if flags & EXTERNAL != 0 {
        event.set_mark(None);
        return capture::submit(on, Kind::RecordEvent, "cudaEventRecord", Work::Unknown, happens);
    }
    let mark = capture::mark(on)?;
    if mark.is_none() {
        watchdog::recorded(handle as usize, on as usize);
        happens();
    }
    event.set_mark(mark);
    Ok(())
}

/// Has stream `on` wait for an event.
pub(super) fn wait_on(on: *mut c_void, handle: *mut c_void, flags: c_uint) -> Result<(), Status> {
    stream(on)?;
    let event = event(handle)?;
    if flags & EXTERNAL != 0 {
        return capture::submit(on, Kind::WaitEvent, "cudaStreamWaitEvent", Work::Unknown, || ());
    }
    // Who waits for what was never recorded waits for nothing.
    let mark = event.mark();
    if mark.is_none() && event.moment.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    capture::wait(on, mark.as_ref())
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
            pool::synchronized();
            Ok(())
        }))
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
            handle.set(EVENTS.insert(Event::at(activity::launches() + 1, flags)));
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_takes_the_same_time_however_many_came_before() {
        let event = |launches| Event::at(launches, 0);
        assert_eq!(elapsed(&event(1), &event(3)).ok(), Some(0.2));
        let late = 1 << 40;
        assert_eq!(elapsed(&event(late), &event(late + 1)).ok(), Some(0.1));
        assert_eq!(elapsed(&event(0), &event(1)), Err(INVALID_RESOURCE_HANDLE));
        assert_eq!(elapsed(&Event::at(1, DISABLE_TIMING), &event(1)), Err(INVALID_RESOURCE_HANDLE));
    }
}
