//! Products and solves with sparse matrices (cuSPARSE's generic interface).

use std::ffi::c_void;

use super::descriptors::{dense, set_entries, sparse};
use super::{Handle, known, launched, needs, status, workspace};
use crate::activity;
use crate::entry::{Out, entry_points, typed_entry_points};

type Descriptor = *mut c_void;
type Scalar = *const c_void;

/// Both phases of a product of sparse matrices tell a buffer's size when asked without a buffer; with
/// one, the second settles the number of entries.
fn product_phase(
    call: &'static str,
    handle: Handle,
    [a, b, c]: [Descriptor; 3],
    bytes: Out<usize>,
    buffer: *mut c_void,
) -> i32 {
    let (Some(left), Some(right)) = (sparse(a), sparse(b)) else { return status::INVALID_VALUE };
    let entries = workspace::product_entries(&left, &right);
    if !buffer.is_null() {
        set_entries(c, entries);
        return launched(call, handle);
    }
    let size = workspace::product_buffer(entries, left.value_bytes);
    if i64::try_from(size).is_err() {
        return status::INVALID_VALUE;
    }
    activity::estimate(workspace::PRODUCT_BASIS);
    bytes.set(size as usize);
    known(handle)
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusparseSpMM_bufferSize(handle: Handle, _op_a: i32, _op_b: i32, _alpha: Scalar, a: Descriptor,
        _b: Descriptor, _beta: Scalar, _c: Descriptor, _compute: i32, _algorithm: i32,
        bytes: Out<usize>) -> i32 {
        needs(handle, sparse(a).map(|a| workspace::product(&a)), bytes)
    }

    fn cusparseSpMV_bufferSize(handle: Handle, _op: i32, _alpha: Scalar, a: Descriptor, _x: Descriptor,
        _beta: Scalar, _y: Descriptor, _compute: i32, _algorithm: i32, bytes: Out<usize>) -> i32 {
        needs(handle, sparse(a).map(|a| workspace::product(&a)), bytes)
    }

    fn cusparseSDDMM_bufferSize(handle: Handle, _op_a: i32, _op_b: i32, _alpha: Scalar, _a: Descriptor,
        _b: Descriptor, _beta: Scalar, c: Descriptor, _compute: i32, _algorithm: i32,
        bytes: Out<usize>) -> i32 {
        needs(handle, sparse(c).map(|c| workspace::product(&c)), bytes)
    }

    fn cusparseSpSM_bufferSize(handle: Handle, _op_a: i32, _op_b: i32, _alpha: Scalar, a: Descriptor,
        b: Descriptor, _c: Descriptor, _compute: i32, _algorithm: i32, _solve: Descriptor,
        bytes: Out<usize>) -> i32 {
        let size = sparse(a).zip(dense(b)).map(|(a, b)| workspace::solve(&a, b.bytes()));
        needs(handle, size, bytes)
    }

    fn cusparseSpSV_bufferSize(handle: Handle, _op: i32, _alpha: Scalar, a: Descriptor, x: Descriptor,
        _y: Descriptor, _compute: i32, _algorithm: i32, _solve: Descriptor, bytes: Out<usize>) -> i32 {
        let size = sparse(a).zip(dense(x)).map(|(a, x)| workspace::solve(&a, x.bytes()));
        needs(handle, size, bytes)
    }

    fn cusparseSpGEMM_workEstimation(handle: Handle, _op_a: i32, _op_b: i32, _alpha: Scalar, a: Descriptor,
        b: Descriptor, _beta: Scalar, c: Descriptor, _compute: i32, _algorithm: i32, _product: Descriptor,
        bytes: Out<usize>, buffer: *mut c_void) -> i32 {
        product_phase("cusparseSpGEMM_workEstimation", handle, [a, b, c], bytes, buffer)
    }

    fn cusparseSpGEMM_compute(handle: Handle, _op_a: i32, _op_b: i32, _alpha: Scalar, a: Descriptor,
        b: Descriptor, _beta: Scalar, c: Descriptor, _compute: i32, _algorithm: i32, _product: Descriptor,
        bytes: Out<usize>, buffer: *mut c_void) -> i32 {
        product_phase("cusparseSpGEMM_compute", handle, [a, b, c], bytes, buffer)
    }
}

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    fn [cusparseSpMM, cusparseSpMV, cusparseSDDMM, cusparseSDDMM_preprocess, cusparseSpGEMM_copy,
        cusparseSpSM_analysis, cusparseSpSM_solve, cusparseSpSV_analysis, cusparseSpSV_solve](
        handle: Handle) -> i32 |call| {
        launched(call, handle)
    }
}
