//! CUPTI, which PyTorch's profiler asks for GPU timings. There are none: subscribing is refused, and
//! the profiler goes on without a GPU's part.

use std::ffi::{c_char, c_void};

use crate::activity;
use crate::device;
use crate::entry::{Out, entry_points};

const SUCCESS: i32 = 0;
/// `CUPTI_ERROR_INVALID_PARAMETER`.
const INVALID_PARAMETER: i32 = 1;
/// `CUPTI_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 27;
/// `CUPTI_ERROR_UNKNOWN`.
const UNKNOWN: i32 = 999;

entry_points! { on_panic = UNKNOWN;
    /// CUPTI counts its interface as 10000 × CUDA major + 100 × CUDA minor.
    fn cuptiGetVersion(version: Out<u32>) -> i32 {
        let cuda = device::machine().map_or(0, |machine| machine.description.cuda_version);
        version.set((cuda / 1000 * 10_000 + cuda % 1000 / 10 * 100).unsigned_abs());
        SUCCESS
    }

    fn cuptiSubscribe(subscriber: Out<*mut c_void>, _callback: *const c_void, _data: *mut c_void) -> i32 {
        subscriber.set(std::ptr::null_mut());
        activity::not_implemented("cuptiSubscribe");
        NOT_SUPPORTED
    }

    fn cuptiGetResultString(result: i32, text: Out<*const c_char>) -> i32 {
        let known = match result {
            SUCCESS => c"CUPTI_SUCCESS",
            INVALID_PARAMETER => c"CUPTI_ERROR_INVALID_PARAMETER",
            NOT_SUPPORTED => c"CUPTI_ERROR_NOT_SUPPORTED",
            UNKNOWN => c"CUPTI_ERROR_UNKNOWN",
            _ => return INVALID_PARAMETER,
        };
        text.set(known.as_ptr());
        SUCCESS
    }
}
