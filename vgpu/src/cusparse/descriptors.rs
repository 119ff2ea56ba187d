//! cuSPARSE's descriptors: sizes are remembered, pointers are not followed.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::status;
use crate::activity;
use crate::data_type::{self, cuda_name};
use crate::entry::{Out, entry_points, typed_entry_points};
use crate::handles::Handles;

/// A sparse matrix in any format.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SparseMatrix {
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) entries: u64,
    /// Bytes of one of its values.
    pub(super) value_bytes: u64,
}

/// A dense matrix; a vector has one column.
#[derive(Clone, Copy, Debug)]
pub(super) struct DenseMatrix {
    rows: u64,
    columns: u64,
    value_bytes: u64,
}

impl DenseMatrix {
    pub(super) fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.columns).saturating_mul(self.value_bytes)
    }
}

static SPARSE: Handles<Mutex<SparseMatrix>> = Handles::new();
static DENSE: Handles<DenseMatrix> = Handles::new();
/// Descriptors of which nothing is ever read: types of matrices, analyses.
static OTHERS: Handles<()> = Handles::new();

/// Bytes of a value of a `cudaDataType`; a type that is not known is refused.
fn value_bytes(data_type: i32) -> Result<u64, i32> {
    data_type::bytes(data_type).ok_or_else(|| {
        let name = cuda_name(data_type);
        activity::not_implemented(format!("cuSPARSE with values of type {name} ({data_type})"));
        status::NOT_SUPPORTED
    })
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
    match value_bytes(data_type) {
        Ok(value_bytes) => {
            let matrix = SparseMatrix { rows, columns, entries, value_bytes };
            create(&SPARSE, descriptor, Mutex::new(matrix))
        }
        Err(refused) => refused,
    }
}

fn create_dense(descriptor: Out<*mut c_void>, sizes: [i64; 2], data_type: i32) -> i32 {
    let [Ok(rows), Ok(columns)] = sizes.map(u64::try_from) else { return status::INVALID_VALUE };
    match value_bytes(data_type) {
        Ok(value_bytes) => create(&DENSE, descriptor, DenseMatrix { rows, columns, value_bytes }),
        Err(refused) => refused,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_unknown_size_is_refused_and_all_others_have_their_own() {
        let vector = |data_type| {
            let mut handle = std::ptr::null_mut();
            match create_dense(Out::of(&raw mut handle), [10, 1], data_type) {
                status::SUCCESS => Ok(dense(handle).unwrap().bytes()),
                refused => Err(refused),
            }
        };
        assert_eq!([3, 6, 24, 5].map(vector), [Ok(10), Ok(40), Ok(80), Ok(160)]);
        assert_eq!([16, 99].map(vector), [Err(status::NOT_SUPPORTED); 2]);
        let mut handle = std::ptr::null_mut();
        let sparse = create_sparse(Out::of(&raw mut handle), [10, 10, 5], 99);
        assert_eq!((sparse, handle), (status::NOT_SUPPORTED, std::ptr::null_mut()));
    }
}
