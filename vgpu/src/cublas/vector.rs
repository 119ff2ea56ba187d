//! cuBLAS's vector operations and triangular solves, as far as PyTorch itself calls them: counted as
//! launches, not computed.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use super::{HANDLES, POINTER_MODE_HOST, launch, status};
use crate::activity;
use crate::entry::{Out, entry_points};

type Handle = *mut c_void;
type Vector = *const c_void;
type Scalar = *const c_void;

/// Counts one launch of `call`.
fn launched(call: &'static str, handle: Handle) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    launch(call, state.stream(), move || activity::launched(call))
}

/// Counts one launch of a reduction. A result in host memory is zero, since nobody computed it; one
/// in device memory stays as it is, as every kernel's result does.
fn reduced<T: Default>(call: &'static str, handle: Handle, result: Out<T>) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    let launched = launch(call, state.stream(), move || activity::launched(call));
    if state.pointer_mode.load(Ordering::Relaxed) == POINTER_MODE_HOST {
        result.set(T::default());
    }
    launched
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cublasSdot_v2(handle: Handle, _n: i32, _x: Vector, _incx: i32, _y: Vector, _incy: i32,
        result: Out<f32>) -> i32 {
        reduced("cublasSdot", handle, result)
    }

    fn cublasDdot_v2(handle: Handle, _n: i32, _x: Vector, _incx: i32, _y: Vector, _incy: i32,
        result: Out<f64>) -> i32 {
        reduced("cublasDdot", handle, result)
    }

    fn cublasCdotu_v2(handle: Handle, _n: i32, _x: Vector, _incx: i32, _y: Vector, _incy: i32,
        result: Out<[f32; 2]>) -> i32 {
        reduced("cublasCdotu", handle, result)
    }

    fn cublasCdotc_v2(handle: Handle, _n: i32, _x: Vector, _incx: i32, _y: Vector, _incy: i32,
        result: Out<[f32; 2]>) -> i32 {
        reduced("cublasCdotc", handle, result)
    }

    fn cublasZdotu_v2(handle: Handle, _n: i32, _x: Vector, _incx: i32, _y: Vector, _incy: i32,
        result: Out<[f64; 2]>) -> i32 {
        reduced("cublasZdotu", handle, result)
    }

    fn cublasZdotc_v2(handle: Handle, _n: i32, _x: Vector, _incx: i32, _y: Vector, _incy: i32,
        result: Out<[f64; 2]>) -> i32 {
        reduced("cublasZdotc", handle, result)
    }

    /// Its result's size depends on `result_type`; PyTorch always asks for it in device memory.
    fn cublasDotEx(handle: Handle, _n: i32, _x: Vector, _x_type: i32, _incx: i32, _y: Vector, _y_type: i32,
        _incy: i32, _result: Vector, _result_type: i32, _execution_type: i32) -> i32 {
        match HANDLES.get(handle) {
            None => status::NOT_INITIALIZED,
            Some(state) if state.pointer_mode.load(Ordering::Relaxed) == POINTER_MODE_HOST => {
                activity::not_implemented("cublasDotEx with a result in host memory");
                status::NOT_SUPPORTED
            }
            Some(_) => launched("cublasDotEx", handle),
        }
    }

    fn cublasStrsm_v2(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32, _n: i32,
        _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32) -> i32 {
        launched("cublasStrsm", handle)
    }

    fn cublasStrsmBatched(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32,
        _n: i32, _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32, _batch: i32) -> i32 {
        launched("cublasStrsmBatched", handle)
    }

    fn cublasDtrsm_v2(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32, _n: i32,
        _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32) -> i32 {
        launched("cublasDtrsm", handle)
    }

    fn cublasDtrsmBatched(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32,
        _n: i32, _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32, _batch: i32) -> i32 {
        launched("cublasDtrsmBatched", handle)
    }

    fn cublasCtrsm_v2(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32, _n: i32,
        _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32) -> i32 {
        launched("cublasCtrsm", handle)
    }

    fn cublasCtrsmBatched(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32,
        _n: i32, _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32, _batch: i32) -> i32 {
        launched("cublasCtrsmBatched", handle)
    }

    fn cublasZtrsm_v2(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32, _n: i32,
        _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32) -> i32 {
        launched("cublasZtrsm", handle)
    }

    fn cublasZtrsmBatched(handle: Handle, _side: i32, _uplo: i32, _trans: i32, _diag: i32, _m: i32,
        _n: i32, _alpha: Scalar, _a: Vector, _lda: i32, _b: Vector, _ldb: i32, _batch: i32) -> i32 {
        launched("cublasZtrsmBatched", handle)
    }
}
