//! cuSPARSE: descriptors are kept, buffers are estimated, calls are counted. The number of entries of a
//! product or a sum of sparse matrices depends on where entries lie, which nobody knows here: the
//! highest plausible one is taken ([`workspace`]) and named in the report.

mod blocks;
mod descriptors;
mod products;
mod sorts;
mod workspace;

use std::ffi::{c_char, c_void};

use vramfit_vgpu_cost::Work;

use crate::activity;
use crate::entry::{Out, entry_points};
use crate::handles::{Handles, NotOpened};
use crate::on_stream::OnStream;

/// Values of `cusparseStatus_t`.
mod status {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const NOT_INITIALIZED: i32 = 1;
    pub(super) const ALLOC_FAILED: i32 = 2;
    pub(super) const INVALID_VALUE: i32 = 3;
    pub(super) const EXECUTION_FAILED: i32 = 6;
    pub(super) const INTERNAL_ERROR: i32 = 7;
    pub(super) const NOT_SUPPORTED: i32 = 10;
}

type Handle = *mut c_void;

static HANDLES: Handles<OnStream> = Handles::new();

fn known(handle: Handle) -> i32 {
    if HANDLES.get(handle).is_some() { status::SUCCESS } else { status::NOT_INITIALIZED }
}

/// Counts one launch of `call`.
fn launched(call: &'static str, handle: Handle) -> i32 {
    launch(call, Work::Unknown, handle, move || activity::launched(call))
}

/// Gives the stream of `handle` what call `call` launches, which asks `work` of the device.
fn launch(
    call: &'static str,
    work: Work,
    handle: Handle,
    effect: impl Fn() + Send + Sync + 'static,
) -> i32 {
    let Some(stream) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    stream.launch(call, work, effect).map_or(status::EXECUTION_FAILED, |()| status::SUCCESS)
}

/// Tells the size of a buffer, if what it is for is known.
fn needs(handle: Handle, size: Option<u64>, answer: Out<usize>) -> i32 {
    let Some(size) = size.filter(|size| i64::try_from(*size).is_ok()) else {
        return status::INVALID_VALUE;
    };
    activity::estimate(workspace::BASIS);
    answer.set(size as usize);
    known(handle)
}

fn status_name(status: i32) -> &'static std::ffi::CStr {
    match status {
        status::SUCCESS => c"success",
        status::NOT_INITIALIZED => c"initialization error",
        status::ALLOC_FAILED => c"out of memory",
        status::INVALID_VALUE => c"invalid value",
        status::EXECUTION_FAILED => c"the function failed to launch on the GPU",
        status::INTERNAL_ERROR => c"internal error",
        status::NOT_SUPPORTED => c"operation not supported",
        _ => c"unrecognized error code",
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusparseCreate(handle: Out<Handle>) -> i32 {
        match HANDLES.open(handle) {
            Ok(()) => status::SUCCESS,
            Err(NotOpened::NullPointer) => status::INVALID_VALUE,
            Err(NotOpened::NoDevice) => status::NOT_INITIALIZED,
            Err(NotOpened::NoMemory) => status::ALLOC_FAILED,
        }
    }

    fn cusparseDestroy(handle: Handle) -> i32 {
        if HANDLES.remove(handle) { status::SUCCESS } else { status::NOT_INITIALIZED }
    }

    fn cusparseSetStream(handle: Handle, stream: *mut c_void) -> i32 {
        let Some(own) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
        own.set(stream);
        status::SUCCESS
    }

    fn cusparseSetPointerMode(handle: Handle, _mode: i32) -> i32 {
        known(handle)
    }
}

entry_points! { on_panic = c"".as_ptr();
    fn cusparseGetErrorString(status: i32) -> *const c_char {
        status_name(status).as_ptr()
    }
}
