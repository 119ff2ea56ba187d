//! Stream capture: beginning and ending it, and asking about it.

use std::ffi::{c_int, c_ulonglong, c_void};

use super::status::{Status, UNKNOWN, status};
use super::stream::{NON_BLOCKING, stream};
use crate::entry::{Out, entry_points};
use crate::graph::capture;

/// Begins to capture a stream.
pub(crate) fn begin(handle: *mut c_void, mode: c_int) -> Result<(), Status> {
    let stream = stream(handle)?;
    capture::begin(handle, stream.ordinal, stream.flags & NON_BLOCKING == 0, mode)
}

/// Ends the capture of a stream. A failure leaves no graph.
pub(crate) fn end(handle: *mut c_void, graph: Out<*mut c_void>) -> Result<(), Status> {
    graph.set(std::ptr::null_mut());
    stream(handle)?;
    capture::end(handle).map(|ended| graph.set(ended))
}

/// Whether a stream is being captured, or its capture was made void.
pub(crate) fn is_capturing(handle: *mut c_void, answer: Out<c_int>) -> Result<(), Status> {
    stream(handle).map(|_| answer.set(capture::answer(handle).status))
}

/// State of a capture.
pub(crate) fn info(
    handle: *mut c_void,
    answer: Out<c_int>,
    id: Out<c_ulonglong>,
    graph: Out<*mut c_void>,
    dependencies: Out<*const c_void>,
    dependency_count: Out<usize>,
) -> Result<(), Status> {
    stream(handle)?;
    let state = capture::answer(handle);
    answer.set(state.status);
    id.set(state.id);
    graph.set(state.graph);
    dependencies.set(state.dependencies);
    dependency_count.set(state.dependency_count);
    Ok(())
}

entry_points! {
    on_panic = UNKNOWN;

    /// Begins to capture a stream.
    fn cudaStreamBeginCapture(handle: *mut c_void, mode: c_int) -> Status {
        status(begin(handle, mode))
    }

    /// Ends the capture of a stream.
    fn cudaStreamEndCapture(handle: *mut c_void, graph: Out<*mut c_void>) -> Status {
        status(end(handle, graph))
    }

    /// Whether the stream is being captured into a graph.
    fn cudaStreamIsCapturing(handle: *mut c_void, answer: Out<c_int>) -> Status {
        status(is_capturing(handle, answer))
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
        status(info(handle, answer, id, graph, dependencies, dependency_count))
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
        status(info(handle, answer, id, graph, dependencies, dependency_count))
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
        status(info(handle, answer, id, graph, dependencies, dependency_count))
    }

    /// Exchanges the thread's capture mode: which calls a capture forbids it.
    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) -> Status {
        if let Some(new) = mode.get() {
            mode.set(capture::exchange_mode(new));
        }
        status(Ok(()))
    }
}
