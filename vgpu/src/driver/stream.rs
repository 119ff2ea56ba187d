//! Streams through the driver: the runtime's.

use std::ffi::{c_int, c_uint, c_void};

use super::context;
use super::device::code;
use crate::entry::{Out, entry_points};
use crate::runtime::status::{Status, UNKNOWN};
use crate::runtime::{create_stream, destroy_stream, stream};

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
        code(stream(handle).map(|_| ()))
    }

    /// Whether all work is done.
    fn cuStreamQuery(handle: *mut c_void) -> Status {
        code(stream(handle).map(|_| ()))
    }

    /// Context of a stream.
    fn cuStreamGetCtx(handle: *mut c_void, answer: Out<*mut c_void>) -> Status {
        code(stream(handle).map(|stream| answer.set(context::handle(stream.ordinal))))
    }

    /// Whether the stream is being captured into a graph: never here.
    fn cuStreamIsCapturing(handle: *mut c_void, answer: Out<c_int>) -> Status {
        code(stream(handle).map(|_| answer.set(0)))
    }
}
