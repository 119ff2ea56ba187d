//! The generic interface, 64-bit sizes and types given as values, with workspaces in bytes.

use std::ffi::c_void;

use super::{Handle, needs_bytes, size, solved, status, workspace};
use crate::entry::{Out, entry_points};

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusolverDnXpotrf_bufferSize(handle: Handle, _parameters: *mut c_void, _uplo: i32, n: i64,
        a_type: i32, _a: *mut c_void, _lda: i64, _compute: i32, device: Out<usize>,
        host: Out<usize>) -> i32 {
        needs_bytes(handle, workspace::panel(size(n)), a_type, device, host)
    }

    fn cusolverDnXpotrf(handle: Handle, _parameters: *mut c_void, _uplo: i32, _n: i64, _a_type: i32,
        _a: *mut c_void, _lda: i64, _compute: i32, _device: *mut c_void, _device_bytes: usize,
        _host: *mut c_void, _host_bytes: usize, info: *mut c_void) -> i32 {
        solved("cusolverDnXpotrf", handle, info, 1)
    }

    fn cusolverDnXpotrs(handle: Handle, _parameters: *mut c_void, _uplo: i32, _n: i64, _nrhs: i64,
        _a_type: i32, _a: *mut c_void, _lda: i64, _b_type: i32, _b: *mut c_void, _ldb: i64,
        info: *mut c_void) -> i32 {
        solved("cusolverDnXpotrs", handle, info, 1)
    }

    fn cusolverDnXgeqrf_bufferSize(handle: Handle, _parameters: *mut c_void, m: i64, n: i64, a_type: i32,
        _a: *mut c_void, _lda: i64, _tau_type: i32, _tau: *mut c_void, _compute: i32, device: Out<usize>,
        host: Out<usize>) -> i32 {
        needs_bytes(handle, workspace::panel(size(m.max(n))), a_type, device, host)
    }

    fn cusolverDnXgeqrf(handle: Handle, _parameters: *mut c_void, _m: i64, _n: i64, _a_type: i32,
        _a: *mut c_void, _lda: i64, _tau_type: i32, _tau: *mut c_void, _compute: i32,
        _device: *mut c_void, _device_bytes: usize, _host: *mut c_void, _host_bytes: usize,
        info: *mut c_void) -> i32 {
        solved("cusolverDnXgeqrf", handle, info, 1)
    }

    fn cusolverDnXsytrs_bufferSize(handle: Handle, _uplo: i32, n: i64, _nrhs: i64, a_type: i32,
        _a: *mut c_void, _lda: i64, _pivots: *mut c_void, _b_type: i32, _b: *mut c_void, _ldb: i64,
        device: Out<usize>, host: Out<usize>) -> i32 {
        needs_bytes(handle, workspace::panel(size(n)), a_type, device, host)
    }

    fn cusolverDnXsytrs(handle: Handle, _uplo: i32, _n: i64, _nrhs: i64, _a_type: i32, _a: *mut c_void,
        _lda: i64, _pivots: *mut c_void, _b_type: i32, _b: *mut c_void, _ldb: i64, _device: *mut c_void,
        _device_bytes: usize, _host: *mut c_void, _host_bytes: usize, info: *mut c_void) -> i32 {
        solved("cusolverDnXsytrs", handle, info, 1)
    }

    fn cusolverDnXsyevd_bufferSize(handle: Handle, _parameters: *mut c_void, _jobz: i32, _uplo: i32,
        n: i64, a_type: i32, _a: *mut c_void, _lda: i64, _w_type: i32, _w: *mut c_void, _compute: i32,
        device: Out<usize>, host: Out<usize>) -> i32 {
        needs_bytes(handle, workspace::symmetric_eigenvalues(size(n)), a_type, device, host)
    }

    fn cusolverDnXsyevd(handle: Handle, _parameters: *mut c_void, _jobz: i32, _uplo: i32, _n: i64,
        _a_type: i32, _a: *mut c_void, _lda: i64, _w_type: i32, _w: *mut c_void, _compute: i32,
        _device: *mut c_void, _device_bytes: usize, _host: *mut c_void, _host_bytes: usize,
        info: *mut c_void) -> i32 {
        solved("cusolverDnXsyevd", handle, info, 1)
    }

    fn cusolverDnXsyevBatched_bufferSize(handle: Handle, _parameters: *mut c_void, _jobz: i32, _uplo: i32,
        n: i64, a_type: i32, _a: *mut c_void, _lda: i64, _w_type: i32, _w: *mut c_void, _compute: i32,
        device: Out<usize>, host: Out<usize>, batch: i64) -> i32 {
        needs_bytes(handle, workspace::symmetric_eigenvalues(size(n)).saturating_mul(size(batch)), a_type,
            device, host)
    }

    fn cusolverDnXsyevBatched(handle: Handle, _parameters: *mut c_void, _jobz: i32, _uplo: i32, _n: i64,
        _a_type: i32, _a: *mut c_void, _lda: i64, _w_type: i32, _w: *mut c_void, _compute: i32,
        _device: *mut c_void, _device_bytes: usize, _host: *mut c_void, _host_bytes: usize,
        info: *mut c_void, batch: i64) -> i32 {
        solved("cusolverDnXsyevBatched", handle, info, batch)
    }

    fn cusolverDnXgeev_bufferSize(handle: Handle, _parameters: *mut c_void, _jobvl: i32, _jobvr: i32,
        n: i64, a_type: i32, _a: *mut c_void, _lda: i64, _w_type: i32, _w: *mut c_void, _vl_type: i32,
        _vl: *mut c_void, _ldvl: i64, _vr_type: i32, _vr: *mut c_void, _ldvr: i64, _compute: i32,
        device: Out<usize>, host: Out<usize>) -> i32 {
        needs_bytes(handle, workspace::eigenvalues(size(n)), a_type, device, host)
    }

    fn cusolverDnXgeev(handle: Handle, _parameters: *mut c_void, _jobvl: i32, _jobvr: i32, _n: i64,
        _a_type: i32, _a: *mut c_void, _lda: i64, _w_type: i32, _w: *mut c_void, _vl_type: i32,
        _vl: *mut c_void, _ldvl: i64, _vr_type: i32, _vr: *mut c_void, _ldvr: i64, _compute: i32,
        _device: *mut c_void, _device_bytes: usize, _host: *mut c_void, _host_bytes: usize,
        info: *mut c_void) -> i32 {
        solved("cusolverDnXgeev", handle, info, 1)
    }
}
