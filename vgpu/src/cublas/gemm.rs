//! cuBLAS's matrix products: recorded by shape and type, not computed.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use vramfit_vgpu_cost::Work;

use super::{HANDLES, TF32_MATH, answer, status};
use crate::activity::{self, GemmShape};
use crate::data_type::{compute_name, cuda_name};
use crate::entry::entry_points;

type Handle = *mut c_void;
type Matrix = *const c_void;
type Matrices = *const *const c_void;
type Scalar = *const c_void;

/// Compute types of the calls that name none (`cublasComputeType_t`).
const COMPUTE_32F: i32 = 68;
const COMPUTE_64F: i32 = 70;
const COMPUTE_32F_FAST_TF32: i32 = 77;

/// The four types in the names of the classic calls: `cudaDataType` and compute type.
const S: (i32, i32) = (0, COMPUTE_32F);
const D: (i32, i32) = (1, COMPUTE_64F);
const C: (i32, i32) = (4, COMPUTE_32F);
const Z: (i32, i32) = (5, COMPUTE_64F);

/// Records `batch` products of m×k by k×n. An empty product launches nothing, as in cuBLAS.
fn product(
    call: &'static str,
    handle: Handle,
    [m, n, k, batch]: [i32; 4],
    (data_type, compute_type): (i32, i32),
) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    if m < 0 || n < 0 || k < 0 || batch < 0 {
        return status::INVALID_VALUE;
    }
    if m == 0 || n == 0 || batch == 0 {
        return status::SUCCESS;
    }
    // The handle's mode lets single-precision products use TF32 without the call saying so.
    let single = compute_type == COMPUTE_32F && matches!(data_type, 0 | 4);
    let tf32 = single && state.math_mode.load(Ordering::Relaxed) == TF32_MATH;
    let compute_type = if tf32 { COMPUTE_32F_FAST_TF32 } else { compute_type };
    let shape = GemmShape {
        call,
        m: m.unsigned_abs().into(),
        n: n.unsigned_abs().into(),
        k: k.unsigned_abs().into(),
        batch: batch.unsigned_abs().into(),
        input_type: cuda_name(data_type),
        compute_type: compute_name(compute_type),
    };
    answer(state.stream.launch(call, Work::Unknown, move || activity::gemm(shape.clone())))
}

/// Old callers give a `cudaDataType` as compute type; those numbers are all below 64.
fn compute_of(compute_type: i32) -> i32 {
    match compute_type {
        0 | 4 => COMPUTE_32F,
        1 | 5 => COMPUTE_64F,
        2 => 64,
        10 => 72,
        other => other,
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cublasSgemm_v2(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Scalar,
        _a: Matrix, _lda: i32, _b: Matrix, _ldb: i32, _beta: Scalar, _c: Matrix, _ldc: i32) -> i32 {
        product("cublasSgemm", handle, [m, n, k, 1], S)
    }

    fn cublasSgemmBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrices, _lda: i32, _b: Matrices, _ldb: i32, _beta: Scalar, _c: Matrices,
        _ldc: i32, batch: i32) -> i32 {
        product("cublasSgemmBatched", handle, [m, n, k, batch], S)
    }

    fn cublasSgemmStridedBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrix, _lda: i32, _stridea: i64, _b: Matrix, _ldb: i32, _strideb: i64,
        _beta: Scalar, _c: Matrix, _ldc: i32, _stridec: i64, batch: i32) -> i32 {
        product("cublasSgemmStridedBatched", handle, [m, n, k, batch], S)
    }

    fn cublasSgemv_v2(handle: Handle, trans: i32, m: i32, n: i32, _alpha: Scalar, _a: Matrix, _lda: i32,
        _x: Matrix, _incx: i32, _beta: Scalar, _y: Matrix, _incy: i32) -> i32 {
        let (rows, inner) = if trans == 0 { (m, n) } else { (n, m) };
        product("cublasSgemv", handle, [rows, 1, inner, 1], S)
    }

    fn cublasDgemm_v2(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Scalar,
        _a: Matrix, _lda: i32, _b: Matrix, _ldb: i32, _beta: Scalar, _c: Matrix, _ldc: i32) -> i32 {
        product("cublasDgemm", handle, [m, n, k, 1], D)
    }

    fn cublasDgemmBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrices, _lda: i32, _b: Matrices, _ldb: i32, _beta: Scalar, _c: Matrices,
        _ldc: i32, batch: i32) -> i32 {
        product("cublasDgemmBatched", handle, [m, n, k, batch], D)
    }

    fn cublasDgemmStridedBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrix, _lda: i32, _stridea: i64, _b: Matrix, _ldb: i32, _strideb: i64,
        _beta: Scalar, _c: Matrix, _ldc: i32, _stridec: i64, batch: i32) -> i32 {
        product("cublasDgemmStridedBatched", handle, [m, n, k, batch], D)
    }

    fn cublasDgemv_v2(handle: Handle, trans: i32, m: i32, n: i32, _alpha: Scalar, _a: Matrix, _lda: i32,
        _x: Matrix, _incx: i32, _beta: Scalar, _y: Matrix, _incy: i32) -> i32 {
        let (rows, inner) = if trans == 0 { (m, n) } else { (n, m) };
        product("cublasDgemv", handle, [rows, 1, inner, 1], D)
    }

    fn cublasCgemm_v2(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Scalar,
        _a: Matrix, _lda: i32, _b: Matrix, _ldb: i32, _beta: Scalar, _c: Matrix, _ldc: i32) -> i32 {
        product("cublasCgemm", handle, [m, n, k, 1], C)
    }

    fn cublasCgemmBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrices, _lda: i32, _b: Matrices, _ldb: i32, _beta: Scalar, _c: Matrices,
        _ldc: i32, batch: i32) -> i32 {
        product("cublasCgemmBatched", handle, [m, n, k, batch], C)
    }

    fn cublasCgemmStridedBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrix, _lda: i32, _stridea: i64, _b: Matrix, _ldb: i32, _strideb: i64,
        _beta: Scalar, _c: Matrix, _ldc: i32, _stridec: i64, batch: i32) -> i32 {
        product("cublasCgemmStridedBatched", handle, [m, n, k, batch], C)
    }

    fn cublasCgemv_v2(handle: Handle, trans: i32, m: i32, n: i32, _alpha: Scalar, _a: Matrix, _lda: i32,
        _x: Matrix, _incx: i32, _beta: Scalar, _y: Matrix, _incy: i32) -> i32 {
        let (rows, inner) = if trans == 0 { (m, n) } else { (n, m) };
        product("cublasCgemv", handle, [rows, 1, inner, 1], C)
    }

    fn cublasZgemm_v2(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Scalar,
        _a: Matrix, _lda: i32, _b: Matrix, _ldb: i32, _beta: Scalar, _c: Matrix, _ldc: i32) -> i32 {
        product("cublasZgemm", handle, [m, n, k, 1], Z)
    }

    fn cublasZgemmBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrices, _lda: i32, _b: Matrices, _ldb: i32, _beta: Scalar, _c: Matrices,
        _ldc: i32, batch: i32) -> i32 {
        product("cublasZgemmBatched", handle, [m, n, k, batch], Z)
    }

    fn cublasZgemmStridedBatched(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrix, _lda: i32, _stridea: i64, _b: Matrix, _ldb: i32, _strideb: i64,
        _beta: Scalar, _c: Matrix, _ldc: i32, _stridec: i64, batch: i32) -> i32 {
        product("cublasZgemmStridedBatched", handle, [m, n, k, batch], Z)
    }

    fn cublasZgemv_v2(handle: Handle, trans: i32, m: i32, n: i32, _alpha: Scalar, _a: Matrix, _lda: i32,
        _x: Matrix, _incx: i32, _beta: Scalar, _y: Matrix, _incy: i32) -> i32 {
        let (rows, inner) = if trans == 0 { (m, n) } else { (n, m) };
        product("cublasZgemv", handle, [rows, 1, inner, 1], Z)
    }

    fn cublasSgemmEx(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Scalar,
        _a: Matrix, a_type: i32, _lda: i32, _b: Matrix, _b_type: i32, _ldb: i32, _beta: Scalar, _c: Matrix,
        _c_type: i32, _ldc: i32) -> i32 {
        product("cublasSgemmEx", handle, [m, n, k, 1], (a_type, COMPUTE_32F))
    }

    fn cublasGemmEx(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32, _alpha: Scalar,
        _a: Matrix, a_type: i32, _lda: i32, _b: Matrix, _b_type: i32, _ldb: i32, _beta: Scalar, _c: Matrix,
        _c_type: i32, _ldc: i32, compute_type: i32, _algorithm: i32) -> i32 {
        product("cublasGemmEx", handle, [m, n, k, 1], (a_type, compute_of(compute_type)))
    }

    fn cublasGemmBatchedEx(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrices, a_type: i32, _lda: i32, _b: Matrices, _b_type: i32, _ldb: i32,
        _beta: Scalar, _c: Matrices, _c_type: i32, _ldc: i32, batch: i32, compute_type: i32,
        _algorithm: i32) -> i32 {
        product("cublasGemmBatchedEx", handle, [m, n, k, batch], (a_type, compute_of(compute_type)))
    }

    fn cublasGemmStridedBatchedEx(handle: Handle, _transa: i32, _transb: i32, m: i32, n: i32, k: i32,
        _alpha: Scalar, _a: Matrix, a_type: i32, _lda: i32, _stridea: i64, _b: Matrix, _b_type: i32,
        _ldb: i32, _strideb: i64, _beta: Scalar, _c: Matrix, _c_type: i32, _ldc: i32, _stridec: i64,
        batch: i32, compute_type: i32, _algorithm: i32) -> i32 {
        product("cublasGemmStridedBatchedEx", handle, [m, n, k, batch],
            (a_type, compute_of(compute_type)))
    }
}
