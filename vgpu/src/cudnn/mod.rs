//! cuDNN. The graph interface is NVIDIA's own library run without a device ([`backend`]), which takes
//! cuDNN 9.8 or newer; a rule answers where there is none. The older calls are modelled as far as
//! PyTorch trains with them ([`descriptors`], [`batch_norm`], [`ctc`], [`dropout`], [`recurrent`],
//! [`spatial`]).
//!
//! ```text
//! backend ─► real ─► properties    operation graphs, engine choice, workspace sizes; the device it is told
//!    ├────► modelled ─► rule       where no cuDNN can be asked
//!    └────► graph                  what each plan computes, for the report
//! ```

mod backend;
mod batch_norm;
mod ctc;
mod descriptors;
mod dropout;
mod graph;
mod modelled;
mod properties;
mod real;
mod recurrent;
mod rule;
mod spatial;

use std::ffi::{CStr, c_char, c_void};

use vramfit_vgpu_cost::Work;

use crate::entry::{Out, entry_points};
use crate::handles::{Handles, NotOpened};
use crate::on_stream::OnStream;
use crate::{activity, runtime};

pub(crate) use real::source;

/// Values of `cudnnStatus_t` (cuDNN 9).
mod status {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const NOT_INITIALIZED: i32 = 1001;
    pub(super) const BAD_PARAM: i32 = 2000;
    pub(super) const BAD_PARAM_NULL_POINTER: i32 = 2002;
    pub(super) const NOT_SUPPORTED: i32 = 3000;
    pub(super) const INTERNAL_ERROR: i32 = 4000;
    pub(super) const DEVICE_ALLOCATION_FAILED: i32 = 4004;
    pub(super) const EXECUTION_FAILED: i32 = 5000;
}

static HANDLES: Handles<OnStream> = Handles::new();

/// Counts one launch of `call`.
fn launched(call: &'static str, handle: *mut c_void) -> i32 {
    launch(call, Work::Unknown, handle, move || activity::launched(call))
}

/// Gives the stream of `handle` what call `call` launches, which asks `work` of the device.
fn launch(
    call: &'static str,
    work: Work,
    handle: *mut c_void,
    effect: impl Fn() + Send + Sync + 'static,
) -> i32 {
    let Some(stream) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    stream.launch(call, work, effect).map_or(status::EXECUTION_FAILED, |()| status::SUCCESS)
}

/// cuDNN's names of its data types, without `CUDNN_DATA_`.
fn data_type_name(data_type: i32) -> &'static str {
    match data_type {
        0 => "FLOAT",
        1 => "DOUBLE",
        2 => "HALF",
        3 => "INT8",
        4 => "INT32",
        6 => "UINT8",
        9 => "BFLOAT16",
        10 => "INT64",
        11 => "BOOLEAN",
        12 => "FP8_E4M3",
        13 => "FP8_E5M2",
        15 => "FP8_E8M0",
        16 => "FP4_E2M1",
        _ => "unknown",
    }
}

/// Bytes of an element of a type. Types of less than a byte count as one.
fn element_bytes(data_type: i32) -> u64 {
    match data_type {
        1 | 10 => 8,
        2 | 9 => 2,
        0 | 4 => 4,
        _ => 1,
    }
}

fn own_status_text(status: i32) -> &'static CStr {
    match status {
        status::SUCCESS => c"CUDNN_STATUS_SUCCESS",
        status::NOT_INITIALIZED => c"CUDNN_STATUS_NOT_INITIALIZED",
        status::BAD_PARAM => c"CUDNN_STATUS_BAD_PARAM",
        status::BAD_PARAM_NULL_POINTER => c"CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
        status::NOT_SUPPORTED => c"CUDNN_STATUS_NOT_SUPPORTED",
        status::INTERNAL_ERROR => c"CUDNN_STATUS_INTERNAL_ERROR",
        status::DEVICE_ALLOCATION_FAILED => c"CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        status::EXECUTION_FAILED => c"CUDNN_STATUS_EXECUTION_FAILED",
        _ => c"CUDNN_UNKNOWN_STATUS",
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnCreate(handle: Out<*mut c_void>) -> i32 {
        match HANDLES.open(handle) {
            Ok(()) => status::SUCCESS,
            Err(NotOpened::NullPointer) => status::BAD_PARAM_NULL_POINTER,
            Err(NotOpened::NoDevice) => status::NOT_INITIALIZED,
            Err(NotOpened::NoMemory) => status::DEVICE_ALLOCATION_FAILED,
        }
    }

    fn cudnnDestroy(handle: *mut c_void) -> i32 {
        if HANDLES.remove(handle) { status::SUCCESS } else { status::NOT_INITIALIZED }
    }

    fn cudnnSetStream(handle: *mut c_void, stream: *mut c_void) -> i32 {
        match HANDLES.get(handle) {
            Some(own) => {
                own.set(stream);
                status::SUCCESS
            }
            None => status::NOT_INITIALIZED,
        }
    }

    fn cudnnGetStream(handle: *mut c_void, stream: Out<*mut c_void>) -> i32 {
        match HANDLES.get(handle) {
            Some(own) => {
                stream.set(own.get());
                status::SUCCESS
            }
            None => status::NOT_INITIALIZED,
        }
    }

    /// `which` is a `libraryPropertyType`: 0 major, 1 minor, 2 patch.
    fn cudnnGetProperty(which: i32, value: Out<i32>) -> i32 {
        let version = real::version() as i32;
        value.set(match which {
            0 => version / 10_000,
            1 => version / 100 % 100,
            2 => version % 100,
            _ => return status::BAD_PARAM,
        });
        status::SUCCESS
    }
}

entry_points! { on_panic = 0;
    /// 0 where there is no cuDNN.
    fn cudnnGetVersion() -> usize {
        real::version()
    }

    fn cudnnGetCudartVersion() -> usize {
        runtime::runtime_version().unsigned_abs() as usize
    }
}

entry_points! { on_panic = c"".as_ptr();
    fn cudnnGetErrorString(status: i32) -> *const c_char {
        match real::library() {
            Some(real) => (real.error_string)(status),
            None => own_status_text(status).as_ptr(),
        }
    }
}

entry_points! { on_panic = ();
    fn cudnnGetLastErrorString(message: Out<u8>, capacity: usize) -> () {
        match real::library() {
            Some(real) => (real.last_error)(message, capacity),
            None => message.set_text("not supported by the virtual GPU's rule for cuDNN", capacity),
        }
    }
}
