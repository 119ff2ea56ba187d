//! Matrices of blocks (BSR): products and triangular solves.

use std::ffi::c_void;

use super::{Handle, known, launched, status, workspace};
use crate::activity;
use crate::entry::{Out, entry_points, typed_entry_points};

type Data = *const c_void;

/// What `zeroPivot` answers when there is none.
const NO_PIVOT: i32 = -1;

/// Tells the buffer of a solve with so many rows of blocks: 16 bytes a row, as in
/// [`workspace::solve`].
fn solve_needs(handle: Handle, block_rows: i32, bytes: Out<i32>) -> i32 {
    activity::estimate(workspace::BASIS);
    bytes.set(block_rows.max(0).saturating_add(1).saturating_mul(16));
    known(handle)
}

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    fn [cusparseSbsrsv2_bufferSize, cusparseDbsrsv2_bufferSize, cusparseCbsrsv2_bufferSize,
        cusparseZbsrsv2_bufferSize](handle: Handle, _direction: i32, _op: i32, block_rows: i32,
        _blocks: i32, _a: Data, _values: Data, _offsets: Data, _columns: Data, _block: i32, _info: Data,
        bytes: Out<i32>) -> i32 |_call| {
        solve_needs(handle, block_rows, bytes)
    }

    fn [cusparseSbsrsm2_bufferSize, cusparseDbsrsm2_bufferSize, cusparseCbsrsm2_bufferSize,
        cusparseZbsrsm2_bufferSize](handle: Handle, _direction: i32, _op_a: i32, _op_x: i32,
        block_rows: i32, _columns: i32, _blocks: i32, _a: Data, _values: Data, _offsets: Data,
        _indices: Data, _block: i32, _info: Data, bytes: Out<i32>) -> i32 |_call| {
        solve_needs(handle, block_rows, bytes)
    }

    fn [cusparseSbsrmm, cusparseDbsrmm, cusparseCbsrmm, cusparseZbsrmm, cusparseSbsrmv, cusparseDbsrmv,
        cusparseCbsrmv, cusparseZbsrmv, cusparseSbsrsm2_analysis, cusparseDbsrsm2_analysis,
        cusparseCbsrsm2_analysis, cusparseZbsrsm2_analysis, cusparseSbsrsm2_solve, cusparseDbsrsm2_solve,
        cusparseCbsrsm2_solve, cusparseZbsrsm2_solve, cusparseSbsrsv2_analysis, cusparseDbsrsv2_analysis,
        cusparseCbsrsv2_analysis, cusparseZbsrsv2_analysis, cusparseSbsrsv2_solve, cusparseDbsrsv2_solve,
        cusparseCbsrsv2_solve, cusparseZbsrsv2_solve](handle: Handle) -> i32 |call| {
        launched(call, handle)
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusparseXbsrsm2_zeroPivot(handle: Handle, _info: Data, position: Out<i32>) -> i32 {
        position.set(NO_PIVOT);
        known(handle)
    }

    fn cusparseXbsrsv2_zeroPivot(handle: Handle, _info: Data, position: Out<i32>) -> i32 {
        position.set(NO_PIVOT);
        known(handle)
    }
}
