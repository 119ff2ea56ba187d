//! Streams: queues in which nothing ever waits.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::device::ready;
use super::status::{INVALID_RESOURCE_HANDLE, Status, UNKNOWN, status};
use crate::device;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;
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
    if STREAMS.remove(handle) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) }
}

/// Answers a question about a stream.
fn ask<T>(handle: *mut c_void, answer: Out<T>, question: impl FnOnce(&Stream) -> T) -> Status {
    status(stream(handle).map(|stream| answer.set(question(&stream))))
}

/// `cudaStreamCaptureStatusNone`: graphs are not captured here.
const NOT_CAPTURING: c_int = 0;

fn capture_info(
    handle: *mut c_void,
    answer: Out<c_int>,
    id: Out<c_ulonglong>,
    graph: Out<*mut c_void>,
    dependencies: Out<*const c_void>,
    dependency_count: Out<usize>,
) -> Status {
    id.set(0);
    graph.set(std::ptr::null_mut());
    dependencies.set(std::ptr::null());
    dependency_count.set(0);
    ask(handle, answer, |_| NOT_CAPTURING)
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
        status(stream(handle).map(|_| ()))
    }

    /// Waits until all work is done.
    fn cudaStreamSynchronize(handle: *mut c_void) -> Status {
        watchdog::synchronize();
        status(stream(handle).map(|_| ()))
    }

    /// Has a stream wait for an event.
    fn cudaStreamWaitEvent(handle: *mut c_void, event: *mut c_void, _flags: c_uint) -> Status {
        status(stream(handle).and(super::event::event(event)).map(|_| ()))
    }

    /// Calls the host after all work so far, which is at once.
    fn cudaStreamAddCallback(
        handle: *mut c_void,
        callback: Option<unsafe extern "C" fn(*mut c_void, Status, *mut c_void)>,
        argument: *mut c_void,
        _flags: c_uint,
    ) -> Status {
        if let Some(callback) = callback {
            // SAFETY: the program gave both the function and its argument for this call.
            unsafe { callback(handle, 0, argument) };
        }
        status(Ok(()))
    }

    /// Calls the host after all work so far, which is at once.
    fn cudaLaunchHostFunc(
        _handle: *mut c_void,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        argument: *mut c_void,
    ) -> Status {
        if let Some(function) = function {
            // SAFETY: the program gave both the function and its argument for this call.
            unsafe { function(argument) };
        }
        status(Ok(()))
    }

    /// Whether the stream is being captured into a graph.
    fn cudaStreamIsCapturing(handle: *mut c_void, answer: Out<c_int>) -> Status {
        ask(handle, answer, |_| NOT_CAPTURING)
    }

    /// State of a capture. CUDA 13's arguments; CUDA 12 has the same under the name `_v3`, and under
    /// this name a function that programs for CUDA 12 do not call any more.
    fn cudaStreamGetCaptureInfo(
        handle: *mut c_void,
        answer: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<*mut c_void>,
        dependencies: Out<*const c_void>,
        edges: Out<*const c_void>,
        dependency_count: Out<usize>,
    ) -> Status {
        edges.set(std::ptr::null());
        capture_info(handle, answer, id, graph, dependencies, dependency_count)
    }

    /// State of a capture (CUDA 12, since 12.3).
    fn cudaStreamGetCaptureInfo_v3(
        handle: *mut c_void,
        answer: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<*mut c_void>,
        dependencies: Out<*const c_void>,
        edges: Out<*const c_void>,
        dependency_count: Out<usize>,
    ) -> Status {
        edges.set(std::ptr::null());
        capture_info(handle, answer, id, graph, dependencies, dependency_count)
    }

    /// State of a capture (CUDA 12).
    fn cudaStreamGetCaptureInfo_v2(
        handle: *mut c_void,
        answer: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<*mut c_void>,
        dependencies: Out<*const c_void>,
        dependency_count: Out<usize>,
    ) -> Status {
        capture_info(handle, answer, id, graph, dependencies, dependency_count)
    }

    /// Exchanges the thread's capture mode, which only matters while capturing.
    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) -> Status {
        thread_local! {
            static MODE: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
        }
        if let Some(new) = mode.get() {
            mode.set(MODE.replace(new));
        }
        status(Ok(()))
    }
}
