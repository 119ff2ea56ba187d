//! Sorting the entries of sparse matrices, and adding two of them.

use std::ffi::c_void;

use vramfit_vgpu_cost::Work;

use super::{Handle, known, launch, launched, needs, status, workspace};
use crate::entry::{Out, entry_points, typed_entry_points};
use crate::{activity, address_space, copy};

type Data = *const c_void;

fn size(count: i32) -> u64 {
    count.max(0).unsigned_abs().into()
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusparseXcoosort_bufferSizeExt(handle: Handle, _rows: i32, _columns: i32, entries: i32, _row: Data,
        _column: Data, bytes: Out<usize>) -> i32 {
        needs(handle, Some(workspace::sort(size(entries))), bytes)
    }

    fn cusparseXcsrsort_bufferSizeExt(handle: Handle, _rows: i32, _columns: i32, entries: i32,
        _offsets: Data, _column: Data, bytes: Out<usize>) -> i32 {
        needs(handle, Some(workspace::sort(size(entries))), bytes)
    }

    /// The number of entries of the sum may be wanted on the host or on the device.
    fn cusparseXcsrgeam2Nnz(handle: Handle, rows: i32, columns: i32, _a: Data, a_entries: i32,
        _a_offsets: Data, _a_columns: Data, _b: Data, b_entries: i32, _b_offsets: Data, _b_columns: Data,
        _c: Data, _c_offsets: *mut c_void, total: *mut c_void, _buffer: *mut c_void) -> i32 {
        let entries = (size(a_entries) + size(b_entries)).min(size(rows) * size(columns));
        // The interface counts entries in 32 bits.
        let Ok(entries) = i32::try_from(entries) else { return status::INVALID_VALUE };
        activity::estimate(workspace::SUM_BASIS);
        let on_device = address_space::ordinal_of(total).is_some();
        let (total, count) = (total as usize, entries.to_ne_bytes());
        let tell = move || copy::write(total as *mut c_void, &count, true);
        if !on_device {
            tell();
        }
        launch("cusparseXcsrgeam2Nnz", Work::Unknown, handle, move || {
            activity::launched("cusparseXcsrgeam2Nnz");
            if on_device {
                tell();
            }
        })
    }
}

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    /// Offsets of rows while they are counted.
    fn [cusparseScsrgeam2_bufferSizeExt, cusparseDcsrgeam2_bufferSizeExt, cusparseCcsrgeam2_bufferSizeExt,
        cusparseZcsrgeam2_bufferSizeExt](handle: Handle, rows: i32, _columns: i32, _alpha: Data, _a: Data,
        _a_entries: i32, _a_values: Data, _a_offsets: Data, _a_columns: Data, _beta: Data, _b: Data,
        _b_entries: i32, _b_values: Data, _b_offsets: Data, _b_columns: Data, _c: Data, _c_values: Data,
        _c_offsets: Data, _c_columns: Data, bytes: Out<usize>) -> i32 |_call| {
        needs(handle, Some(8 * (size(rows) + 1)), bytes)
    }

    fn [cusparseScsrgeam2, cusparseDcsrgeam2, cusparseCcsrgeam2, cusparseZcsrgeam2, cusparseXcoosortByRow,
        cusparseXcsrsort, cusparseXcoo2csr](handle: Handle) -> i32 |call| {
        launched(call, handle)
    }

    fn [cusparseCreateIdentityPermutation](handle: Handle, _length: i32, permutation: *mut c_void)
        -> i32 |call| {
        if permutation.is_null() { known(handle) } else { launched(call, handle) }
    }
}
