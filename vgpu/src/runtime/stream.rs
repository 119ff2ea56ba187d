//! Streams: queues in which nothing ever waits.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vramfit_vgpu_cost::Work;

use super::device::ready;
use super::status::{INVALID_RESOURCE_HANDLE, Status, UNKNOWN, status};
use crate::device;
use crate::entry::{Out, entry_points};
use crate::graph::{Kind, capture};
use crate::handles::Handles;
use crate::memory::pool;
use crate::nccl::watchdog;

/// A stream that a program made.
pub(crate) struct Stream {
    /// CUDA ordinal of its device.
    pub(crate) ordinal: usize,
    /// 0 to -5, smaller is more urgent.
    pub(crate) priority: c_int,
    /// As given.
    pub(crate) flags: c_uint,
    /// Unique in the process.
    id: u64,
}

static STREAMS: Handles<Stream> = Handles::new();

/// Default (null), legacy (1) and per-thread (2) stream.
fn is_built_in(handle: *mut c_void) -> bool {
    (handle as usize) <= 2
}

/// The stream behind `handle`; built-in ones belong to the current device.
pub(crate) fn stream(handle: *mut c_void) -> Result<Arc<Stream>, Status> {
    if is_built_in(handle) {
        let id = handle as u64;
        return Ok(Arc::new(Stream { ordinal: device::current(), priority: 0, flags: 0, id }));
    }
    STREAMS.get(handle).ok_or(INVALID_RESOURCE_HANDLE)
}

/// Makes a stream on the current device.
pub(crate) fn create_stream(flags: c_uint, priority: c_int) -> Result<*mut c_void, Status> {
    static IDS: AtomicU64 = AtomicU64::new(16);
    ready()?;
    let ordinal = device::current();
    device::make_context(ordinal)?;
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    Ok(STREAMS.insert(Stream { ordinal, priority: priority.clamp(-5, 0), flags, id }))
}

/// Ends a stream.
pub(crate) fn destroy_stream(handle: *mut c_void) -> Result<(), Status> {
    capture::forget_stream(handle);
    if STREAMS.remove(handle) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) }
}

/// Waits until all work on a stream is done.
pub(crate) fn synchronize_stream(handle: *mut c_void) -> Result<(), Status> {
    stream(handle)?;
    capture::forbid_stream(handle)?;
    watchdog::synchronize();
    pool::synchronized();
    Ok(())
}

/// Answers a question about a stream.
fn ask<T>(handle: *mut c_void, answer: Out<T>, question: impl FnOnce(&Stream) -> T) -> Status {
    status(stream(handle).map(|stream| answer.set(question(&stream))))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Makes a stream.
    fn cudaStreamCreate(handle: Out<*mut c_void>) -> Status {
        status(create_stream(0, 0).map(|stream| handle.set(stream)))
    }

    /// Makes a stream.
    fn cudaStreamCreateWithFlags(handle: Out<*mut c_void>, flags: c_uint) -> Status {
        status(create_stream(flags, 0).map(|stream| handle.set(stream)))
    }

    /// Makes a stream.
    fn cudaStreamCreateWithPriority(
        handle: Out<*mut c_void>,
        flags: c_uint,
        priority: c_int,
    ) -> Status {
        status(create_stream(flags, priority).map(|stream| handle.set(stream)))
    }

    /// Ends a stream.
    fn cudaStreamDestroy(handle: *mut c_void) -> Status {
        status(destroy_stream(handle))
    }

    /// Priority of a stream.
    fn cudaStreamGetPriority(handle: *mut c_void, priority: Out<c_int>) -> Status {
        ask(handle, priority, |stream| stream.priority)
    }

    /// Flags of a stream.
    fn cudaStreamGetFlags(handle: *mut c_void, flags: Out<c_uint>) -> Status {
        ask(handle, flags, |stream| stream.flags)
    }

    /// Unique number of a stream.
    fn cudaStreamGetId(handle: *mut c_void, id: Out<c_ulonglong>) -> Status {
        ask(handle, id, |stream| stream.id)
    }

    /// Device of a stream.
    fn cudaStreamGetDevice(handle: *mut c_void, ordinal: Out<c_int>) -> Status {
        ask(handle, ordinal, |stream| stream.ordinal as c_int)
    }

    /// Whether all work is done: it always is.
    fn cudaStreamQuery(handle: *mut c_void) -> Status {
        status(stream(handle).and_then(|_| capture::forbid_stream(handle)))
    }

    /// Waits until all work is done.
    fn cudaStreamSynchronize(handle: *mut c_void) -> Status {
        status(synchronize_stream(handle))
    }

    /// Has a stream wait for an event.
    fn cudaStreamWaitEvent(handle: *mut c_void, event: *mut c_void, flags: c_uint) -> Status {
        status(super::event::wait_on(handle, event, flags))
    }

    /// Calls the host after all work so far, which is at once.
    fn cudaStreamAddCallback(
        handle: *mut c_void,
        callback: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
        argument: *mut c_void,
        _flags: c_uint,
    ) -> Status {
        // A callback of this old kind cannot be captured.
        status(stream(handle).and_then(|_| capture::forbid_stream(handle)).map(|()| {
            if let Some(callback) = callback {
                // SAFETY: the program gave both the function and its argument for this call.
                unsafe { callback(handle, 0, argument) };
            }
        }))
    }

    /// Calls the host after all work so far, which is at once.
    fn cudaLaunchHostFunc(
        handle: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        argument: *mut c_void,
    ) -> Status {
        let argument = argument as usize;
        status(stream(handle).and_then(|_| {
            capture::submit(handle, Kind::Host, "cudaLaunchHostFunc", Work::Unknown, move || {
                if let Some(function) = function {
                    // SAFETY: the program gave both the function and its argument for this call, and
                    // in a capture for each launch of its graph.
                    unsafe { function(argument as *mut c_void) };
                }
            })
        }))
    }
}
