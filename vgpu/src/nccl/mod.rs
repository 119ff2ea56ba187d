//! NCCL for the ranks of one host: processes, or threads, that share a virtual GPU's folder.
//!
//! Ranks really meet: a call returns when all have made it. Payloads of at most 64 KiB are really
//! exchanged and reduced, so that shapes, flags and pickled objects arrive; larger ones, which only
//! kernels would have filled, are left as they are. A rank that dies, leaves or makes another call
//! than the others fails the call of those who wait for it, where NVIDIA's library would hang.
//!
//! ```text
//! collectives ─► group ─► operation ─► room    what is exchanged; what goes together; how one advances;
//!      │                      └──► reduction ─► element    where ranks meet; the arithmetic
//! membership ─► communicator ─► buffers         who takes part; what NCCL itself would hold on the device
//! watchdog                                      the thread that PyTorch lets look after all this
//! ```

mod buffers;
mod collectives;
mod communicator;
mod element;
mod group;
mod membership;
mod operation;
mod reduction;
mod room;
pub(crate) mod watchdog;
mod work;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::entry::{Out, entry_points};
use crate::real_library::RealLibrary;

/// Values of `ncclResult_t`.
mod status {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const UNHANDLED_CUDA_ERROR: i32 = 1;
    pub(super) const SYSTEM_ERROR: i32 = 2;
    pub(super) const INTERNAL_ERROR: i32 = 3;
    pub(super) const INVALID_ARGUMENT: i32 = 4;
    pub(super) const INVALID_USAGE: i32 = 5;
    pub(super) const REMOTE_ERROR: i32 = 6;
}

/// Why a call failed: its status, and words for `ncclGetLastError`.
#[derive(Debug)]
struct Failure {
    status: i32,
    text: String,
}

impl Failure {
    fn new(status: i32, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    fn argument(text: impl Into<String>) -> Self {
        Self::new(status::INVALID_ARGUMENT, text)
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Turns the result of a call into its status; the words are kept for `ncclGetLastError`.
fn finish(result: Result<(), Failure>) -> i32 {
    match result {
        Ok(()) => status::SUCCESS,
        Err(failure) => {
            LAST_ERROR.set(CString::new(failure.text).unwrap_or_default());
            failure.status
        }
    }
}

fn words(status: i32) -> &'static CStr {
    match status {
        status::SUCCESS => c"no error",
        status::UNHANDLED_CUDA_ERROR => c"unhandled cuda error",
        status::SYSTEM_ERROR => c"unhandled system error",
        status::INTERNAL_ERROR => c"internal error",
        status::INVALID_ARGUMENT => c"invalid argument",
        status::INVALID_USAGE => c"invalid usage",
        status::REMOTE_ERROR => c"remote process exited or there was a network error",
        _ => c"unknown result code",
    }
}

entry_points! {
    on_panic = status::INTERNAL_ERROR;

    /// Version of the NCCL that the program brought along: 10000 × major + 100 × minor + patch.
    fn ncclGetVersion(version: Out<c_int>) -> i32 {
        let real = RealLibrary::loaded(c"libnccl.so.2");
        // SAFETY: ncclResult_t ncclGetVersion(int*), in all versions.
        let get = real.and_then(|real| unsafe {
            real.function::<extern "C" fn(Out<c_int>) -> i32>(c"ncclGetVersion")
        });
        version.set(0);
        get.map_or(status::SYSTEM_ERROR, |get| get(version))
    }
}

entry_points! {
    on_panic = c"".as_ptr();

    /// Meaning of a status.
    fn ncclGetErrorString(status: i32) -> *const c_char {
        words(status).as_ptr()
    }

    /// What was wrong in the thread's last call that failed.
    fn ncclGetLastError(_communicator: *mut c_void) -> *const c_char {
        // Lives until the thread's next failure, as the interface promises no more.
        LAST_ERROR.with_borrow(|text| text.as_ptr())
    }
}
