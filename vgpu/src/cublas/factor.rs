//! cuBLAS's factorizations and solves of batches of small matrices: counted, and each is said to have
//! succeeded.

use std::ffi::c_void;

use vramfit_vgpu_cost::Work;

use super::{HANDLES, answer, status};
use crate::entry::{Out, typed_entry_points};

type Handle = *mut c_void;

/// What `info` says of a success.
const NONE_FAILED: i32 = 0;

/// Counts one launch of `call` that writes the outcome of `problems` problems to `info` on the device: all
/// succeeded.
fn solved(call: &'static str, handle: Handle, info: *mut c_void, problems: i32) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    answer(state.stream.solve(call, Work::Unknown, info, problems.into()))
}

/// Counts one launch of `call`, whose `info` is about its arguments and on the host: told at once.
fn launched(call: &'static str, handle: Handle, info: Out<i32>) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    info.set(NONE_FAILED);
    answer(state.stream.count(call, Work::Unknown))
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
        _b: *mut c_void, _ldb: i32, info: Out<i32>, _batch: i32) -> i32 |call| {
        launched(call, handle, info)
    }

    fn [cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched, cublasZgeqrfBatched](handle: Handle,
        _m: i32, _n: i32, _a: *mut c_void, _lda: i32, _tau: *mut c_void, info: Out<i32>, _batch: i32)
        -> i32 |call| {
        launched(call, handle, info)
    }

    /// Has an array on the device besides.
    fn [cublasSgelsBatched, cublasDgelsBatched, cublasCgelsBatched, cublasZgelsBatched](handle: Handle,
        _trans: i32, _m: i32, _n: i32, _nrhs: i32, _a: *mut c_void, _lda: i32, _c: *mut c_void, _ldc: i32,
        info: Out<i32>, each_info: *mut c_void, batch: i32) -> i32 |call| {
        info.set(NONE_FAILED);
        solved(call, handle, each_info, batch)
    }
}
