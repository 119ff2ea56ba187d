//! cuBLAS: handles and their state. Calls are only recorded, in [`factor`], [`gemm`] and [`vector`]; no
//! value is computed.

mod factor;
mod gemm;
mod vector;
pub(crate) mod work;

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::device;
use crate::entry::{Out, entry_points};
use crate::handles::{Handles, NotOpened};
use crate::on_stream::OnStream;
use crate::real_library::RealLibrary;
use crate::runtime::status::Status;

/// Values of `cublasStatus_t`.
pub(crate) mod status {
    pub(crate) const SUCCESS: i32 = 0;
    pub(crate) const NOT_INITIALIZED: i32 = 1;
    pub(crate) const ALLOC_FAILED: i32 = 3;
    pub(crate) const INVALID_VALUE: i32 = 7;
    pub(crate) const EXECUTION_FAILED: i32 = 13;
    pub(crate) const INTERNAL_ERROR: i32 = 14;
    pub(crate) const NOT_SUPPORTED: i32 = 15;
}

/// `CUBLAS_TF32_TENSOR_OP_MATH`: single-precision products may use TF32.
const TF32_MATH: i32 = 3;
/// `CUBLAS_POINTER_MODE_HOST`: scalars and scalar results lie in host memory.
const POINTER_MODE_HOST: i32 = 0;

/// What a handle remembers.
#[derive(Default)]
struct State {
    stream: OnStream,
    math_mode: AtomicI32,
    pointer_mode: AtomicI32,
    atomics_mode: AtomicI32,
    sm_count_target: AtomicI32,
}

static HANDLES: Handles<State> = Handles::new();

/// Answers with `body` applied to the state of `handle`.
fn with_handle(handle: *mut c_void, body: impl FnOnce(&State)) -> i32 {
    match HANDLES.get(handle) {
        Some(state) => {
            body(&state);
            status::SUCCESS
        }
        None => status::NOT_INITIALIZED,
    }
}

/// The answer of a call whose work was `given` to a stream.
pub(crate) fn answer(given: Result<(), Status>) -> i32 {
    given.map_or(status::EXECUTION_FAILED, |()| status::SUCCESS)
}

/// A fresh handle on the calling thread's device, whose context it makes.
pub(crate) fn create_handle(handle: Out<*mut c_void>) -> i32 {
    match HANDLES.open(handle) {
        Ok(()) => status::SUCCESS,
        Err(NotOpened::NullPointer) => status::INVALID_VALUE,
        Err(NotOpened::NoDevice) => status::NOT_INITIALIZED,
        Err(NotOpened::NoMemory) => status::ALLOC_FAILED,
    }
}

pub(crate) fn destroy_handle(handle: *mut c_void) -> i32 {
    if HANDLES.remove(handle) { status::SUCCESS } else { status::NOT_INITIALIZED }
}

/// Version of the cuBLAS that the process has loaded, 10000 × major + 100 × minor + patch. Without
/// one, the first cuBLAS of the CUDA that the driver supports.
pub(crate) fn version() -> i32 {
    static VERSION: OnceLock<i32> = OnceLock::new();
    *VERSION.get_or_init(|| {
        real_version().unwrap_or_else(|| {
            let cuda = device::machine().map_or(0, |machine| machine.description.cuda_version);
            cuda / 1000 * 10_000
        })
    })
}

fn real_version() -> Option<i32> {
    let library =
        [c"libcublas.so.13", c"libcublas.so.12"].into_iter().find_map(RealLibrary::loaded)?;
    // SAFETY: cublasStatus_t cublasGetProperty(libraryPropertyType, int*), in all versions.
    let get: extern "C" fn(i32, *mut i32) -> i32 =
        unsafe { library.function(c"cublasGetProperty") }?;
    let property = |which| {
        let mut value = 0;
        (get(which, &raw mut value) == status::SUCCESS).then_some(value)
    };
    Some(property(0)? * 10_000 + property(1)? * 100 + property(2)?)
}

/// Reads `version` as the `libraryPropertyType` 0 major, 1 minor, 2 patch.
fn property(which: i32) -> Option<i32> {
    let version = version();
    match which {
        0 => Some(version / 10_000),
        1 => Some(version / 100 % 100),
        2 => Some(version % 100),
        _ => None,
    }
}

fn status_name(status: i32) -> &'static std::ffi::CStr {
    match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"CUBLAS_STATUS_UNKNOWN",
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cublasCreate_v2(handle: Out<*mut c_void>) -> i32 {
        create_handle(handle)
    }

    fn cublasDestroy_v2(handle: *mut c_void) -> i32 {
        destroy_handle(handle)
    }

    fn cublasGetVersion_v2(_handle: *mut c_void, version_out: Out<i32>) -> i32 {
        version_out.set(version());
        status::SUCCESS
    }

    fn cublasGetProperty(which: i32, value: Out<i32>) -> i32 {
        match property(which) {
            Some(number) => {
                value.set(number);
                status::SUCCESS
            }
            None => status::INVALID_VALUE,
        }
    }

    fn cublasSetStream_v2(handle: *mut c_void, stream: *mut c_void) -> i32 {
        with_handle(handle, |state| state.stream.set(stream))
    }

    fn cublasGetStream_v2(handle: *mut c_void, stream: Out<*mut c_void>) -> i32 {
        with_handle(handle, |state| stream.set(state.stream.get()))
    }

    /// The workspace is the caller's own memory; nothing here would use it.
    fn cublasSetWorkspace_v2(handle: *mut c_void, _workspace: *mut c_void, _bytes: usize) -> i32 {
        with_handle(handle, |_| ())
    }

    fn cublasSetMathMode(handle: *mut c_void, mode: i32) -> i32 {
        with_handle(handle, |state| state.math_mode.store(mode, Ordering::Relaxed))
    }

    fn cublasGetMathMode(handle: *mut c_void, mode: Out<i32>) -> i32 {
        with_handle(handle, |state| mode.set(state.math_mode.load(Ordering::Relaxed)))
    }

    fn cublasSetPointerMode_v2(handle: *mut c_void, mode: i32) -> i32 {
        with_handle(handle, |state| state.pointer_mode.store(mode, Ordering::Relaxed))
    }

    fn cublasGetPointerMode_v2(handle: *mut c_void, mode: Out<i32>) -> i32 {
        with_handle(handle, |state| mode.set(state.pointer_mode.load(Ordering::Relaxed)))
    }

    fn cublasSetAtomicsMode(handle: *mut c_void, mode: i32) -> i32 {
        with_handle(handle, |state| state.atomics_mode.store(mode, Ordering::Relaxed))
    }

    fn cublasGetAtomicsMode(handle: *mut c_void, mode: Out<i32>) -> i32 {
        with_handle(handle, |state| mode.set(state.atomics_mode.load(Ordering::Relaxed)))
    }

    fn cublasSetSmCountTarget(handle: *mut c_void, count: i32) -> i32 {
        with_handle(handle, |state| state.sm_count_target.store(count, Ordering::Relaxed))
    }

    fn cublasGetSmCountTarget(handle: *mut c_void, count: Out<i32>) -> i32 {
        with_handle(handle, |state| count.set(state.sm_count_target.load(Ordering::Relaxed)))
    }
}

entry_points! { on_panic = c"".as_ptr();
    fn cublasGetStatusName(status: i32) -> *const c_char {
        status_name(status).as_ptr()
    }

    fn cublasGetStatusString(status: i32) -> *const c_char {
        status_name(status).as_ptr()
    }
}
