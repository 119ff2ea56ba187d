//! The classic interface, a function for each type of numbers (S, D, C, Z), with sizes in elements.

use std::ffi::c_void;

use super::{Handle, needs, size, solved, status, workspace};
use crate::copy;
use crate::entry::{Out, typed_entry_points};

typed_entry_points! { on_panic = status::INTERNAL_ERROR;
    fn [cusolverDnSgetrf_bufferSize, cusolverDnDgetrf_bufferSize, cusolverDnCgetrf_bufferSize,
        cusolverDnZgetrf_bufferSize](handle: Handle, m: i32, n: i32, _a: *mut c_void, _lda: i32,
        answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::panel(size(m.max(n))), answer)
    }

    fn [cusolverDnSgetrf, cusolverDnDgetrf, cusolverDnCgetrf, cusolverDnZgetrf](handle: Handle, _m: i32,
        _n: i32, _a: *mut c_void, _lda: i32, _work: *mut c_void, _pivots: *mut c_void,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSgetrs, cusolverDnDgetrs, cusolverDnCgetrs, cusolverDnZgetrs](handle: Handle,
        _trans: i32, _n: i32, _nrhs: i32, _a: *mut c_void, _lda: i32, _pivots: *mut c_void,
        _b: *mut c_void, _ldb: i32, info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSpotrf_bufferSize, cusolverDnDpotrf_bufferSize, cusolverDnCpotrf_bufferSize,
        cusolverDnZpotrf_bufferSize](handle: Handle, _uplo: i32, n: i32, _a: *mut c_void, _lda: i32,
        answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::panel(size(n)), answer)
    }

    fn [cusolverDnSpotrf, cusolverDnDpotrf, cusolverDnCpotrf, cusolverDnZpotrf](handle: Handle,
        _uplo: i32, _n: i32, _a: *mut c_void, _lda: i32, _work: *mut c_void, _lwork: i32,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSpotrs, cusolverDnDpotrs, cusolverDnCpotrs, cusolverDnZpotrs](handle: Handle,
        _uplo: i32, _n: i32, _nrhs: i32, _a: *mut c_void, _lda: i32, _b: *mut c_void, _ldb: i32,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, cusolverDnCpotrfBatched,
        cusolverDnZpotrfBatched](handle: Handle, _uplo: i32, _n: i32, _a: *mut c_void, _lda: i32,
        info: *mut c_void, batch: i32) -> i32 |call| {
        solved(call, handle, info, batch.into())
    }

    /// Its `info` is one number for the whole batch.
    fn [cusolverDnSpotrsBatched, cusolverDnDpotrsBatched, cusolverDnCpotrsBatched,
        cusolverDnZpotrsBatched](handle: Handle, _uplo: i32, _n: i32, _nrhs: i32, _a: *mut c_void,
        _lda: i32, _b: *mut c_void, _ldb: i32, info: *mut c_void, _batch: i32) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSgeqrf_bufferSize, cusolverDnDgeqrf_bufferSize, cusolverDnCgeqrf_bufferSize,
        cusolverDnZgeqrf_bufferSize](handle: Handle, m: i32, n: i32, _a: *mut c_void, _lda: i32,
        answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::panel(size(m.max(n))), answer)
    }

    fn [cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf, cusolverDnZgeqrf](handle: Handle, _m: i32,
        _n: i32, _a: *mut c_void, _lda: i32, _tau: *mut c_void, _work: *mut c_void, _lwork: i32,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize, cusolverDnCungqr_bufferSize,
        cusolverDnZungqr_bufferSize](handle: Handle, m: i32, n: i32, _k: i32, _a: *mut c_void, _lda: i32,
        _tau: *mut c_void, answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::panel(size(m.max(n))), answer)
    }

    fn [cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr](handle: Handle, _m: i32,
        _n: i32, _k: i32, _a: *mut c_void, _lda: i32, _tau: *mut c_void, _work: *mut c_void, _lwork: i32,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSormqr_bufferSize, cusolverDnDormqr_bufferSize, cusolverDnCunmqr_bufferSize,
        cusolverDnZunmqr_bufferSize](handle: Handle, _side: i32, _trans: i32, m: i32, n: i32, _k: i32,
        _a: *mut c_void, _lda: i32, _tau: *mut c_void, _c: *mut c_void, _ldc: i32,
        answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::panel(size(m.max(n))), answer)
    }

    fn [cusolverDnSormqr, cusolverDnDormqr, cusolverDnCunmqr, cusolverDnZunmqr](handle: Handle,
        _side: i32, _trans: i32, _m: i32, _n: i32, _k: i32, _a: *mut c_void, _lda: i32, _tau: *mut c_void,
        _c: *mut c_void, _ldc: i32, _work: *mut c_void, _lwork: i32, info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSsytrf_bufferSize, cusolverDnDsytrf_bufferSize, cusolverDnCsytrf_bufferSize,
        cusolverDnZsytrf_bufferSize](handle: Handle, n: i32, _a: *mut c_void, _lda: i32,
        answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::panel(size(n)), answer)
    }

    fn [cusolverDnSsytrf, cusolverDnDsytrf, cusolverDnCsytrf, cusolverDnZsytrf](handle: Handle,
        _uplo: i32, _n: i32, _a: *mut c_void, _lda: i32, _pivots: *mut c_void, _work: *mut c_void,
        _lwork: i32, info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSsyevd_bufferSize, cusolverDnDsyevd_bufferSize, cusolverDnCheevd_bufferSize,
        cusolverDnZheevd_bufferSize](handle: Handle, _jobz: i32, _uplo: i32, n: i32, _a: *mut c_void,
        _lda: i32, _w: *mut c_void, answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::symmetric_eigenvalues(size(n)), answer)
    }

    fn [cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd, cusolverDnZheevd](handle: Handle,
        _jobz: i32, _uplo: i32, _n: i32, _a: *mut c_void, _lda: i32, _w: *mut c_void, _work: *mut c_void,
        _lwork: i32, info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSsyevj_bufferSize, cusolverDnDsyevj_bufferSize, cusolverDnCheevj_bufferSize,
        cusolverDnZheevj_bufferSize](handle: Handle, _jobz: i32, _uplo: i32, n: i32, _a: *mut c_void,
        _lda: i32, _w: *mut c_void, answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::symmetric_eigenvalues(size(n)), answer)
    }

    fn [cusolverDnSsyevj, cusolverDnDsyevj, cusolverDnCheevj, cusolverDnZheevj](handle: Handle,
        _jobz: i32, _uplo: i32, _n: i32, _a: *mut c_void, _lda: i32, _w: *mut c_void, _work: *mut c_void,
        _lwork: i32, info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSsyevjBatched_bufferSize, cusolverDnDsyevjBatched_bufferSize,
        cusolverDnCheevjBatched_bufferSize, cusolverDnZheevjBatched_bufferSize](handle: Handle,
        _jobz: i32, _uplo: i32, n: i32, _a: *mut c_void, _lda: i32, _w: *mut c_void, answer: Out<i32>,
        _parameters: *mut c_void, batch: i32) -> i32 |_call| {
        needs(handle, workspace::symmetric_eigenvalues(size(n)).saturating_mul(size(batch)), answer)
    }

    fn [cusolverDnSsyevjBatched, cusolverDnDsyevjBatched, cusolverDnCheevjBatched,
        cusolverDnZheevjBatched](handle: Handle, _jobz: i32, _uplo: i32, _n: i32, _a: *mut c_void,
        _lda: i32, _w: *mut c_void, _work: *mut c_void, _lwork: i32, info: *mut c_void,
        _parameters: *mut c_void, batch: i32) -> i32 |call| {
        solved(call, handle, info, batch.into())
    }

    fn [cusolverDnSgesvd_bufferSize, cusolverDnDgesvd_bufferSize, cusolverDnCgesvd_bufferSize,
        cusolverDnZgesvd_bufferSize](handle: Handle, m: i32, n: i32, answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::singular_values(size(m), size(n)), answer)
    }

    /// `jobu` and `jobvt` are characters.
    fn [cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd, cusolverDnZgesvd](handle: Handle, _jobu: i8,
        _jobvt: i8, _m: i32, _n: i32, _a: *mut c_void, _lda: i32, _s: *mut c_void, _u: *mut c_void,
        _ldu: i32, _vt: *mut c_void, _ldvt: i32, _work: *mut c_void, _lwork: i32, _rwork: *mut c_void,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSgesvdj_bufferSize, cusolverDnDgesvdj_bufferSize, cusolverDnCgesvdj_bufferSize,
        cusolverDnZgesvdj_bufferSize](handle: Handle, _jobz: i32, _econ: i32, m: i32, n: i32,
        _a: *mut c_void, _lda: i32, _s: *mut c_void, _u: *mut c_void, _ldu: i32, _v: *mut c_void,
        _ldv: i32, answer: Out<i32>) -> i32 |_call| {
        needs(handle, workspace::singular_values_by_jacobi(size(m), size(n)), answer)
    }

    fn [cusolverDnSgesvdj, cusolverDnDgesvdj, cusolverDnCgesvdj, cusolverDnZgesvdj](handle: Handle,
        _jobz: i32, _econ: i32, _m: i32, _n: i32, _a: *mut c_void, _lda: i32, _s: *mut c_void,
        _u: *mut c_void, _ldu: i32, _v: *mut c_void, _ldv: i32, _work: *mut c_void, _lwork: i32,
        info: *mut c_void) -> i32 |call| {
        solved(call, handle, info, 1)
    }

    fn [cusolverDnSgesvdjBatched_bufferSize, cusolverDnDgesvdjBatched_bufferSize,
        cusolverDnCgesvdjBatched_bufferSize, cusolverDnZgesvdjBatched_bufferSize](handle: Handle,
        _jobz: i32, m: i32, n: i32, _a: *mut c_void, _lda: i32, _s: *mut c_void, _u: *mut c_void,
        _ldu: i32, _v: *mut c_void, _ldv: i32, answer: Out<i32>, _parameters: *mut c_void,
        batch: i32) -> i32 |_call| {
        needs(handle, workspace::singular_values_by_jacobi(size(m), size(n)).saturating_mul(size(batch)), answer)
    }

    fn [cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched, cusolverDnCgesvdjBatched,
        cusolverDnZgesvdjBatched](handle: Handle, _jobz: i32, _m: i32, _n: i32, _a: *mut c_void,
        _lda: i32, _s: *mut c_void, _u: *mut c_void, _ldu: i32, _v: *mut c_void, _ldv: i32,
        _work: *mut c_void, _lwork: i32, info: *mut c_void, _parameters: *mut c_void,
        batch: i32) -> i32 |call| {
        solved(call, handle, info, batch.into())
    }

    fn [cusolverDnSgesvdaStridedBatched_bufferSize, cusolverDnDgesvdaStridedBatched_bufferSize,
        cusolverDnCgesvdaStridedBatched_bufferSize,
        cusolverDnZgesvdaStridedBatched_bufferSize](handle: Handle, _jobz: i32, _rank: i32, m: i32,
        n: i32, _a: *mut c_void, _lda: i32, _stride_a: i64, _s: *mut c_void, _stride_s: i64,
        _u: *mut c_void, _ldu: i32, _stride_u: i64, _v: *mut c_void, _ldv: i32, _stride_v: i64,
        answer: Out<i32>, batch: i32) -> i32 |_call| {
        needs(handle, workspace::singular_values_of_tall(size(m), size(n)).saturating_mul(size(batch)), answer)
    }

    /// The residuals, if wanted, are one number a problem in host memory.
    fn [cusolverDnSgesvdaStridedBatched, cusolverDnDgesvdaStridedBatched, cusolverDnCgesvdaStridedBatched,
        cusolverDnZgesvdaStridedBatched](handle: Handle, _jobz: i32, _rank: i32, _m: i32, _n: i32,
        _a: *mut c_void, _lda: i32, _stride_a: i64, _s: *mut c_void, _stride_s: i64, _u: *mut c_void,
        _ldu: i32, _stride_u: i64, _v: *mut c_void, _ldv: i32, _stride_v: i64, _work: *mut c_void,
        _lwork: i32, info: *mut c_void, residuals: *mut c_void, batch: i32) -> i32 |call| {
        copy::write_zeros(residuals, size(batch) as usize * size_of::<f64>(), false);
        solved(call, handle, info, batch.into())
    }
}
