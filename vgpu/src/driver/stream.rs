//! Streams through the driver: the runtime's.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::context;
use super::device::code;
use crate::entry::{Out, entry_points};
use crate::graph::capture;
use crate::runtime::status::{Status, UNKNOWN};
use crate::runtime::{self, create_stream, destroy_stream, stream, synchronize_stream};

entry_points! {
    on_panic = UNKNOWN;

    /// Makes a stream.
    fn cuStreamCreate(handle: Out<*mut c_void>, flags: c_uint) -> Status {
        code(create_stream(flags, 0).map(|stream| handle.set(stream)))
    }

    /// Makes a stream.
    fn cuStreamCreateWithPriority(
        handle: Out<*mut c_void>,
        flags: c_uint,
        priority: c_int,
    ) -> Status {
        code(create_stream(flags, priority).map(|stream| handle.set(stream)))
    }

    /// Ends a stream.
    fn cuStreamDestroy_v2(handle: *mut c_void) -> Status {
        code(destroy_stream(handle))
    }

    /// Waits until all work is done.
    fn cuStreamSynchronize(handle: *mut c_void) -> Status {
        code(synchronize_stream(handle))
    }

    /// Whether all work is done.
    fn cuStreamQuery(handle: *mut c_void) -> Status {
        code(stream(handle).and_then(|_| capture::forbid_stream(handle)))
    }

    /// Context of a stream.
    fn cuStreamGetCtx(handle: *mut c_void, answer: Out<*mut c_void>) -> Status {
        code(stream(handle).map(|stream| answer.set(context::handle(stream.ordinal))))
    }

    /// Begins to capture a stream.
    fn cuStreamBeginCapture_v2(handle: *mut c_void, mode: c_int) -> Status {
        code(runtime::begin(handle, mode))
    }

    /// Ends the capture of a stream.
    fn cuStreamEndCapture(handle: *mut c_void, graph: Out<*mut c_void>) -> Status {
        code(runtime::end(handle, graph))
    }

    /// Whether the stream is being captured into a graph.
    fn cuStreamIsCapturing(handle: *mut c_void, answer: Out<c_int>) -> Status {
        code(runtime::is_capturing(handle, answer))
    }

    /// State of a capture.
    fn cuStreamGetCaptureInfo_v2(
        handle: *mut c_void,
        answer: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<*mut c_void>,
        dependencies: Out<*const c_void>,
        dependency_count: Out<usize>,
    ) -> Status {
        code(runtime::info(handle, answer, id, graph, dependencies, dependency_count))
    }

    /// State of a capture.
    fn cuStreamGetCaptureInfo_v3(
        handle: *mut c_void,
        answer: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<*mut c_void>,
        dependencies: Out<*const c_void>,
        edges: Out<*const c_void>,
        dependency_count: Out<usize>,
    ) -> Status {
        edges.set(std::ptr::null());
        code(runtime::info(handle, answer, id, graph, dependencies, dependency_count))
    }

    /// Exchanges the thread's capture mode.
    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) -> Status {
        if let Some(new) = mode.get() {
            mode.set(capture::exchange_mode(new));
        }
        code(Ok(()))
    }
}
