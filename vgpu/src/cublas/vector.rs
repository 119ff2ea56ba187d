//! cuBLAS's vector operations, triangular solves and what MAGMA (part of PyTorch's linear algebra) calls
//! beside products: counted as launches, not computed.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use vramfit_vgpu_cost::Work;

use super::{HANDLES, POINTER_MODE_HOST, answer, status};
use crate::entry::{Out, entry_points, typed_entry_points};
use crate::graph::Kind;
use crate::{activity, copy, runtime};

type Handle = *mut c_void;
type Vector = *const c_void;

/// Counts one launch of `call`.
fn launched(call: &'static str, handle: Handle) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    answer(state.stream.count(call, Work::Unknown))
}

/// Counts one launch of a reduction. A result in host memory is zero, since nobody computed it; one
/// in device memory stays as it is, as every kernel's result does.
fn reduced<T: Default>(call: &'static str, handle: Handle, result: Out<T>) -> i32 {
    let Some(state) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    let launched = answer(state.stream.count(call, Work::Unknown));
    if state.pointer_mode.load(Ordering::Relaxed) == POINTER_MODE_HOST {
        result.set(T::default());
    }
    launched
}

/// Copies a matrix of rows × columns elements between host and device, stored by columns of `lda` and
/// `ldb` elements.
fn transfer(
    call: &'static str,
    [rows, columns, element]: [i32; 3],
    source: *const c_void,
    lda: i32,
    target: *mut c_void,
    ldb: i32,
    stream: *mut c_void,
) -> i32 {
    let sizes = [rows, columns, element, lda, ldb].map(usize::try_from);
    let [Ok(rows), Ok(columns), Ok(element), Ok(lda), Ok(ldb)] = sizes else {
        return status::INVALID_VALUE;
    };
    if rows > lda.min(ldb) {
        return status::INVALID_VALUE;
    }
    let (source, target) = (source as usize, target as usize);
    let given = runtime::ordered(stream, Kind::Copy, call, Work::Unknown, move || {
        let (source, target) = (source as *const c_void, target as *mut c_void);
        copy::copy_2d(target, ldb * element, source, lda * element, rows * element, columns)
    });
    match given {
        Err(runtime::status::INVALID_VALUE) => status::INVALID_VALUE,
        given => answer(given),
    }
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
}

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    /// All that write to device memory alone.
    fn [
        cublasCaxpy_v2, cublasCcopy_v2, cublasCgerc_v2, cublasCgeru_v2, cublasChemm_v2, cublasChemv_v2,
        cublasCher2_v2, cublasCher2k_v2, cublasCher_v2, cublasCherk_v2, cublasCrot_v2, cublasCscal_v2,
        cublasCsrot_v2, cublasCsscal_v2, cublasCswap_v2, cublasCsymm_v2, cublasCsymv_v2, cublasCsyr2_v2,
        cublasCsyr2k_v2, cublasCsyr_v2, cublasCsyrk_v2, cublasCtrmm_v2, cublasCtrmv_v2,
        cublasCtrsmBatched, cublasCtrsm_v2, cublasCtrsv_v2, cublasDaxpy_v2, cublasDcopy_v2,
        cublasDger_v2, cublasDrot_v2, cublasDrotm_v2, cublasDscal_v2, cublasDswap_v2, cublasDsymm_v2,
        cublasDsymv_v2, cublasDsyr2_v2, cublasDsyr2k_v2, cublasDsyr_v2, cublasDsyrk_v2, cublasDtrmm_v2,
        cublasDtrmv_v2, cublasDtrsmBatched, cublasDtrsm_v2, cublasDtrsv_v2, cublasSaxpy_v2,
        cublasScopy_v2, cublasSger_v2, cublasSrot_v2, cublasSrotm_v2, cublasSscal_v2, cublasSswap_v2,
        cublasSsymm_v2, cublasSsymv_v2, cublasSsyr2_v2, cublasSsyr2k_v2, cublasSsyr_v2, cublasSsyrk_v2,
        cublasStrmm_v2, cublasStrmv_v2, cublasStrsmBatched, cublasStrsm_v2, cublasStrsv_v2,
        cublasZaxpy_v2, cublasZcopy_v2, cublasZdrot_v2, cublasZdscal_v2, cublasZgerc_v2, cublasZgeru_v2,
        cublasZhemm_v2, cublasZhemv_v2, cublasZher2_v2, cublasZher2k_v2, cublasZher_v2, cublasZherk_v2,
        cublasZrot_v2, cublasZscal_v2, cublasZswap_v2, cublasZsymm_v2, cublasZsymv_v2, cublasZsyr2_v2,
        cublasZsyr2k_v2, cublasZsyr_v2, cublasZsyrk_v2, cublasZtrmm_v2, cublasZtrmv_v2,
        cublasZtrsmBatched, cublasZtrsm_v2, cublasZtrsv_v2
    ](handle: Handle) -> i32 |call| {
        launched(call, handle)
    }

    /// Norms and sums of magnitudes are real numbers, also those of complex vectors.
    fn [cublasSasum_v2, cublasScasum_v2, cublasSnrm2_v2, cublasScnrm2_v2](handle: Handle, _n: i32,
        _x: Vector, _incx: i32, result: Out<f32>) -> i32 |call| {
        reduced(call, handle, result)
    }

    fn [cublasDasum_v2, cublasDzasum_v2, cublasDnrm2_v2, cublasDznrm2_v2](handle: Handle, _n: i32,
        _x: Vector, _incx: i32, result: Out<f64>) -> i32 |call| {
        reduced(call, handle, result)
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cublasSetMatrixAsync(rows: i32, columns: i32, element: i32, source: *const c_void, lda: i32,
        target: *mut c_void, ldb: i32, stream: *mut c_void) -> i32 {
        transfer("cublasSetMatrixAsync", [rows, columns, element], source, lda, target, ldb, stream)
    }

    fn cublasGetMatrixAsync(rows: i32, columns: i32, element: i32, source: *const c_void, lda: i32,
        target: *mut c_void, ldb: i32, stream: *mut c_void) -> i32 {
        transfer("cublasGetMatrixAsync", [rows, columns, element], source, lda, target, ldb, stream)
    }

    fn cublasSetVectorAsync(count: i32, element: i32, source: *const c_void, incx: i32,
        target: *mut c_void, incy: i32, stream: *mut c_void) -> i32 {
        transfer("cublasSetVectorAsync", [1, count, element], source, incx, target, incy, stream)
    }

    fn cublasGetVectorAsync(count: i32, element: i32, source: *const c_void, incx: i32,
        target: *mut c_void, incy: i32, stream: *mut c_void) -> i32 {
        transfer("cublasGetVectorAsync", [1, count, element], source, incx, target, incy, stream)
    }
}
