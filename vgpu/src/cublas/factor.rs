//! cuBLAS's factorizations and solves of batches of small matrices: counted, and each is said to have
//! succeeded.

use std::ffi::c_void;

use super::{HANDLES, status};
use crate::entry::typed_entry_points;
use crate::{activity, copy};

type Handle = *mut c_void;

/// Counts one launch of `call`, with the outcome of `problems` problems in `info`: all succeeded.
fn solved(call: &'static str, handle: Handle, info: *mut c_void, problems: i32) -> i32 {
    if HANDLES.get(handle).is_none() {
        return status::NOT_INITIALIZED;
    }
    activity::launched(call);
    let problems = usize::try_from(problems).unwrap_or_default();
    copy::write_zeros(info, problems.saturating_mul(size_of::<i32>()), true);
    status::SUCCESS
}

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    /// `info` is an array on the device.
    fn [cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched, cublasZgetrfBatched](handle: Handle,
        _n: i32, _a: *mut c_void, _lda: i32, _pivots: *mut c_void, info: *mut c_void, batch: i32)
        -> i32 |call| {
        solved(call, handle, info, batch)
    }

    /// `info` is one number on the host, about the arguments; of the next two as well.
    fn [cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched, cublasZgetrsBatched](handle: Handle,
        _trans: i32, _n: i32, _nrhs: i32, _a: *mut c_void, _lda: i32, _pivots: *mut c_void,
        _b: *mut c_void, _ldb: i32, info: *mut c_void, _batch: i32) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched, cublasZgeqrfBatched](handle: Handle,
        _m: i32, _n: i32, _a: *mut c_void, _lda: i32, _tau: *mut c_void, info: *mut c_void, _batch: i32)
        -> i32 |call| {
        solved(call, handle, info, 1)
    }

    /// Has an array on the device besides.
    fn [cublasSgelsBatched, cublasDgelsBatched, cublasCgelsBatched, cublasZgelsBatched](handle: Handle,
        _trans: i32, _m: i32, _n: i32, _nrhs: i32, _a: *mut c_void, _lda: i32, _c: *mut c_void, _ldc: i32,
        info: *mut c_void, each_info: *mut c_void, batch: i32) -> i32 |call| {
        copy::write(info, &[0; size_of::<i32>()], true);
        solved(call, handle, each_info, batch)
    }
}
