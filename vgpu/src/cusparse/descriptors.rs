//! cuSPARSE's descriptors: sizes are remembered, pointers are not followed.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::status;
use crate::entry::{Out, entry_points, typed_entry_points};
use crate::handles::Handles;

/// A sparse matrix in any format.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SparseMatrix {
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) entries: u64,
    /// `cudaDataType` of its values.
    pub(super) data_type: i32,
}

/// A dense matrix; a vector has one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct DenseMatrix {
    rows: u64,
    columns: u64,
    data_type: i32,
}

impl DenseMatrix {
    pub(super) fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.columns).saturating_mul(element_bytes(self.data_type))
    }
}

static SPARSE: Handles<Mutex<SparseMatrix>> = Handles::new();
static DENSE: Handles<DenseMatrix> = Handles::new();
/// Descriptors of which nothing is ever read: types of matrices, analyses.
static OTHERS: Handles<()> = Handles::new();

/// Bytes of a value of a `cudaDataType`.
pub(super) fn element_bytes(data_type: i32) -> u64 {
    match data_type {
        1 | 4 => 8,
        5 => 16,
        2 | 14 => 2,
        3 | 8 => 1,
        _ => 4,
    }
}

pub(super) fn sparse(descriptor: *mut c_void) -> Option<SparseMatrix> {
    let own = SPARSE.get(descriptor)?;
    Some(*own.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Notes how many entries a matrix has, once that is known.
pub(super) fn set_entries(descriptor: *mut c_void, entries: u64) {
    if let Some(own) = SPARSE.get(descriptor) {
        own.lock().unwrap_or_else(PoisonError::into_inner).entries = entries;
    }
}

pub(super) fn dense(descriptor: *mut c_void) -> Option<DenseMatrix> {
    DENSE.get(descriptor).map(|own| *own)
}

/// Makes a sparse matrix of rows × columns with so many entries.
fn create_sparse(descriptor: Out<*mut c_void>, sizes: [i64; 3], data_type: i32) -> i32 {
    let [Ok(rows), Ok(columns), Ok(entries)] = sizes.map(u64::try_from) else {
        return status::INVALID_VALUE;
    };
    let matrix = SparseMatrix { rows, columns, entries, data_type };
    create(&SPARSE, descriptor, Mutex::new(matrix))
}

fn create_dense(descriptor: Out<*mut c_void>, sizes: [i64; 2], data_type: i32) -> i32 {
    let [Ok(rows), Ok(columns)] = sizes.map(u64::try_from) else { return status::INVALID_VALUE };
    create(&DENSE, descriptor, DenseMatrix { rows, columns, data_type })
}

fn create<T>(table: &Handles<T>, descriptor: Out<*mut c_void>, value: T) -> i32 {
    if descriptor.is_null() {
        return status::INVALID_VALUE;
    }
    descriptor.set(table.insert(value));
    status::SUCCESS
}

fn destroy<T>(table: &Handles<T>, descriptor: *mut c_void) -> i32 {
    if descriptor.is_null() || table.remove(descriptor) {
        status::SUCCESS
    } else {
        status::INVALID_VALUE
    }
}

fn known<T>(table: &Handles<T>, descriptor: *mut c_void) -> i32 {
    if table.get(descriptor).is_some() { status::SUCCESS } else { status::INVALID_VALUE }
}

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    fn [cusparseCreateBsrsm2Info, cusparseCreateBsrsv2Info, cusparseCreateMatDescr,
        cusparseSpGEMM_createDescr, cusparseSpSM_createDescr, cusparseSpSV_createDescr](
        descriptor: Out<*mut c_void>) -> i32 |_call| {
        create(&OTHERS, descriptor, ())
    }

    fn [cusparseDestroyBsrsm2Info, cusparseDestroyBsrsv2Info, cusparseDestroyMatDescr,
        cusparseSpGEMM_destroyDescr, cusparseSpSM_destroyDescr, cusparseSpSV_destroyDescr](
        descriptor: *mut c_void) -> i32 |_call| {
        destroy(&OTHERS, descriptor)
    }

    fn [cusparseSetMatDiagType, cusparseSetMatFillMode, cusparseSetMatIndexBase, cusparseSetMatType](
        descriptor: *mut c_void, _value: i32) -> i32 |_call| {
        known(&OTHERS, descriptor)
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusparseCreateCoo(descriptor: Out<*mut c_void>, rows: i64, columns: i64, entries: i64,
        _row_indices: *mut c_void, _column_indices: *mut c_void, _values: *mut c_void, _index_type: i32,
        _base: i32, data_type: i32) -> i32 {
        create_sparse(descriptor, [rows, columns, entries], data_type)
    }

    fn cusparseCreateCsr(descriptor: Out<*mut c_void>, rows: i64, columns: i64, entries: i64,
        _row_offsets: *mut c_void, _column_indices: *mut c_void, _values: *mut c_void, _offset_type: i32,
        _index_type: i32, _base: i32, data_type: i32) -> i32 {
        create_sparse(descriptor, [rows, columns, entries], data_type)
    }

    fn cusparseDestroySpMat(descriptor: *mut c_void) -> i32 {
        destroy(&SPARSE, descriptor)
    }

    fn cusparseCsrSetPointers(descriptor: *mut c_void, _row_offsets: *mut c_void,
        _column_indices: *mut c_void, _values: *mut c_void) -> i32 {
        known(&SPARSE, descriptor)
    }

    fn cusparseCsrSetStridedBatch(descriptor: *mut c_void, _batch: i32, _offsets_stride: i64,
        _entries_stride: i64) -> i32 {
        known(&SPARSE, descriptor)
    }

    fn cusparseSpMatSetAttribute(descriptor: *mut c_void, _attribute: i32, _value: *mut c_void,
        _bytes: usize) -> i32 {
        known(&SPARSE, descriptor)
    }

    fn cusparseSpMatGetSize(descriptor: *mut c_void, rows: Out<i64>, columns: Out<i64>,
        entries: Out<i64>) -> i32 {
        let Some(matrix) = sparse(descriptor) else { return status::INVALID_VALUE };
        rows.set(matrix.rows as i64);
        columns.set(matrix.columns as i64);
        entries.set(matrix.entries as i64);
        status::SUCCESS
    }

    fn cusparseCreateDnMat(descriptor: Out<*mut c_void>, rows: i64, columns: i64, _ld: i64,
        _values: *mut c_void, data_type: i32, _order: i32) -> i32 {
        create_dense(descriptor, [rows, columns], data_type)
    }

    fn cusparseDestroyDnMat(descriptor: *mut c_void) -> i32 {
        destroy(&DENSE, descriptor)
    }

    fn cusparseDnMatSetStridedBatch(descriptor: *mut c_void, _batch: i32, _stride: i64) -> i32 {
        known(&DENSE, descriptor)
    }

    fn cusparseCreateDnVec(descriptor: Out<*mut c_void>, length: i64, _values: *mut c_void,
        data_type: i32) -> i32 {
        create_dense(descriptor, [length, 1], data_type)
    }

    fn cusparseDestroyDnVec(descriptor: *mut c_void) -> i32 {
        destroy(&DENSE, descriptor)
    }
}
