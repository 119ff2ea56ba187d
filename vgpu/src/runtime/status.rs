//! Status codes of the runtime; the driver's are the same for all that are used here.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

use crate::entry::entry_points;
use crate::memory::OutOfMemory;

/// `cudaError_t` and `CUresult`.
pub(crate) type Status = c_int;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const INVALID_VALUE: Status = 1;
pub(crate) const MEMORY_ALLOCATION: Status = 2;
pub(crate) const INITIALIZATION_ERROR: Status = 3;
pub(crate) const INVALID_DEVICE_FUNCTION: Status = 98;
pub(crate) const NO_DEVICE: Status = 100;
pub(crate) const INVALID_DEVICE: Status = 101;
pub(crate) const INVALID_IMAGE: Status = 200;
pub(crate) const DEVICE_UNINITIALIZED: Status = 201;
pub(crate) const MAP_FAILED: Status = 205;
pub(crate) const NO_KERNEL_IMAGE: Status = 209;
pub(crate) const UNSUPPORTED_LIMIT: Status = 215;
pub(crate) const FILE_NOT_FOUND: Status = 301;
pub(crate) const INVALID_RESOURCE_HANDLE: Status = 400;
pub(crate) const ILLEGAL_STATE: Status = 401;
pub(crate) const SYMBOL_NOT_FOUND: Status = 500;
pub(crate) const NOT_READY: Status = 600;
pub(crate) const LAUNCH_OUT_OF_RESOURCES: Status = 701;
pub(crate) const NOT_SUPPORTED: Status = 801;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Status = 900;
pub(crate) const STREAM_CAPTURE_INVALIDATED: Status = 901;
pub(crate) const STREAM_CAPTURE_MERGE: Status = 902;
pub(crate) const STREAM_CAPTURE_UNMATCHED: Status = 903;
pub(crate) const STREAM_CAPTURE_UNJOINED: Status = 904;
pub(crate) const STREAM_CAPTURE_ISOLATION: Status = 905;
pub(crate) const STREAM_CAPTURE_IMPLICIT: Status = 906;
pub(crate) const CAPTURED_EVENT: Status = 907;
pub(crate) const STREAM_CAPTURE_WRONG_THREAD: Status = 908;
pub(crate) const UNKNOWN: Status = 999;

/// Code, the runtime's name, the driver's name, meaning (driver_types.h, cuda.h).
const STATUSES: [(Status, &CStr, &CStr, &CStr); 29] = [
    (SUCCESS, c"cudaSuccess", c"CUDA_SUCCESS", c"no error"),
    (INVALID_VALUE, c"cudaErrorInvalidValue", c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (
        MEMORY_ALLOCATION,
        c"cudaErrorMemoryAllocation",
        c"CUDA_ERROR_OUT_OF_MEMORY",
        c"out of memory",
    ),
    (
        INITIALIZATION_ERROR,
        c"cudaErrorInitializationError",
        c"CUDA_ERROR_NOT_INITIALIZED",
        c"initialization error",
    ),
    (
        INVALID_DEVICE_FUNCTION,
        c"cudaErrorInvalidDeviceFunction",
        c"CUDA_ERROR_INVALID_DEVICE_FUNCTION",
        c"invalid device function",
    ),
    (
        NO_DEVICE,
        c"cudaErrorNoDevice",
        c"CUDA_ERROR_NO_DEVICE",
        c"no CUDA-capable device is detected",
    ),
    (
        INVALID_DEVICE,
        c"cudaErrorInvalidDevice",
        c"CUDA_ERROR_INVALID_DEVICE",
        c"invalid device ordinal",
    ),
    (
        INVALID_IMAGE,
        c"cudaErrorInvalidKernelImage",
        c"CUDA_ERROR_INVALID_IMAGE",
        c"device kernel image is invalid",
    ),
    (
        DEVICE_UNINITIALIZED,
        c"cudaErrorDeviceUninitialized",
        c"CUDA_ERROR_INVALID_CONTEXT",
        c"invalid device context",
    ),
    (
        MAP_FAILED,
        c"cudaErrorMapBufferObjectFailed",
        c"CUDA_ERROR_MAP_FAILED",
        c"mapping of buffer object failed",
    ),
    (
        NO_KERNEL_IMAGE,
        c"cudaErrorNoKernelImageForDevice",
        c"CUDA_ERROR_NO_BINARY_FOR_GPU",
        c"no kernel image is available for execution on the device",
    ),
    (
        UNSUPPORTED_LIMIT,
        c"cudaErrorUnsupportedLimit",
        c"CUDA_ERROR_UNSUPPORTED_LIMIT",
        c"limit is not supported on this architecture",
    ),
    (FILE_NOT_FOUND, c"cudaErrorFileNotFound", c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
    (
        INVALID_RESOURCE_HANDLE,
        c"cudaErrorInvalidResourceHandle",
        c"CUDA_ERROR_INVALID_HANDLE",
        c"invalid resource handle",
    ),
    (
        ILLEGAL_STATE,
        c"cudaErrorIllegalState",
        c"CUDA_ERROR_ILLEGAL_STATE",
        c"the operation cannot be performed in the present state",
    ),
    (
        SYMBOL_NOT_FOUND,
        c"cudaErrorSymbolNotFound",
        c"CUDA_ERROR_NOT_FOUND",
        c"named symbol not found",
    ),
    (NOT_READY, c"cudaErrorNotReady", c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (
        LAUNCH_OUT_OF_RESOURCES,
        c"cudaErrorLaunchOutOfResources",
        c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        c"too many resources requested for launch",
    ),
    (
        NOT_SUPPORTED,
        c"cudaErrorNotSupported",
        c"CUDA_ERROR_NOT_SUPPORTED",
        c"operation not supported",
    ),
    (
        STREAM_CAPTURE_UNSUPPORTED,
        c"cudaErrorStreamCaptureUnsupported",
        c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        c"operation not permitted when stream is capturing",
    ),
    (
        STREAM_CAPTURE_INVALIDATED,
        c"cudaErrorStreamCaptureInvalidated",
        c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        c"operation failed due to a previous error during capture",
    ),
    (
        STREAM_CAPTURE_MERGE,
        c"cudaErrorStreamCaptureMerge",
        c"CUDA_ERROR_STREAM_CAPTURE_MERGE",
        c"operation would result in a merge of separate capture sequences",
    ),
    (
        STREAM_CAPTURE_UNMATCHED,
        c"cudaErrorStreamCaptureUnmatched",
        c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
        c"capture was not ended in the same stream as it began",
    ),
    (
        STREAM_CAPTURE_UNJOINED,
        c"cudaErrorStreamCaptureUnjoined",
        c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
        c"capturing stream has unjoined work",
    ),
    (
        STREAM_CAPTURE_ISOLATION,
        c"cudaErrorStreamCaptureIsolation",
        c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
        c"dependency created on uncaptured work in another stream",
    ),
    (
        STREAM_CAPTURE_IMPLICIT,
        c"cudaErrorStreamCaptureImplicit",
        c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        c"operation would make the legacy stream depend on a capturing blocking stream",
    ),
    (
        CAPTURED_EVENT,
        c"cudaErrorCapturedEvent",
        c"CUDA_ERROR_CAPTURED_EVENT",
        c"operation not permitted on an event last recorded in a capturing stream",
    ),
    (
        STREAM_CAPTURE_WRONG_THREAD,
        c"cudaErrorStreamCaptureWrongThread",
        c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
        c"attempt to terminate a thread-local capture sequence from another thread",
    ),
    (UNKNOWN, c"cudaErrorUnknown", c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

/// The runtime's name, the driver's name and the meaning of `status`.
pub(crate) fn words(status: Status) -> Option<(&'static CStr, &'static CStr, &'static CStr)> {
    STATUSES
        .iter()
        .find(|(code, ..)| *code == status)
        .map(|(_, runtime, driver, meaning)| (*runtime, *driver, *meaning))
}

thread_local! {
    static LAST: Cell<Status> = const { Cell::new(SUCCESS) };
}

/// Turns the result of a body into its status, kept for `cudaGetLastError` if it is a failure.
pub(crate) fn status(result: Result<(), Status>) -> Status {
    match result {
        Ok(()) => SUCCESS,
        Err(failure) => {
            LAST.set(failure);
            failure
        }
    }
}

impl From<OutOfMemory> for Status {
    fn from(_: OutOfMemory) -> Self {
        MEMORY_ALLOCATION
    }
}

entry_points! {
    on_panic = UNKNOWN;

    /// The thread's last failure, once.
    fn cudaGetLastError() -> Status {
        LAST.replace(SUCCESS)
    }

    /// The thread's last failure.
    fn cudaPeekAtLastError() -> Status {
        LAST.get()
    }
}

entry_points! {
    on_panic = std::ptr::null();

    /// Name of a status.
    fn cudaGetErrorName(status: Status) -> *const c_char {
        words(status).map_or(c"unrecognized error code", |(name, ..)| name).as_ptr()
    }

    /// Meaning of a status.
    fn cudaGetErrorString(status: Status) -> *const c_char {
        words(status).map_or(c"unrecognized error code", |(.., meaning)| meaning).as_ptr()
    }
}
