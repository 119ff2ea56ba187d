//! cuSOLVER's dense routines: workspaces are estimated ([`workspace`]), calls are counted, and each is
//! said to have succeeded: its `info`, which PyTorch reads to raise `LinAlgError`, is zero.

mod classic;
mod generic;
mod workspace;

use std::ffi::c_void;

use vramfit_vgpu_cost::Work;

use crate::activity;
use crate::data_type::{self, cuda_name};
use crate::entry::{Out, entry_points};
use crate::handles::{Handles, NotOpened};
use crate::on_stream::OnStream;

/// Values of `cusolverStatus_t`.
mod status {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const NOT_INITIALIZED: i32 = 1;
    pub(super) const ALLOC_FAILED: i32 = 2;
    pub(super) const INVALID_VALUE: i32 = 3;
    pub(super) const EXECUTION_FAILED: i32 = 6;
    pub(super) const INTERNAL_ERROR: i32 = 7;
    pub(super) const NOT_SUPPORTED: i32 = 9;
}

type Handle = *mut c_void;

static HANDLES: Handles<OnStream> = Handles::new();
/// Parameters of the routines, of which nothing is read: tolerances, sweeps, order.
static PARAMETERS: Handles<()> = Handles::new();

/// Counts one launch of `call` that writes the outcome of `problems` problems to `info` on the device: all
/// succeeded.
fn solved(call: &'static str, handle: Handle, info: *mut c_void, problems: i64) -> i32 {
    let Some(stream) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
    let given = stream.solve(call, Work::Unknown, info, problems);
    given.map_or(status::EXECUTION_FAILED, |()| status::SUCCESS)
}

/// Tells the workspace of a routine of the classic interface, in elements.
fn needs(handle: Handle, elements: u64, answer: Out<i32>) -> i32 {
    if HANDLES.get(handle).is_none() {
        return status::NOT_INITIALIZED;
    }
    activity::estimate(workspace::BASIS);
    match i32::try_from(elements) {
        Ok(elements) => {
            answer.set(elements);
            status::SUCCESS
        }
        // The classic interface cannot name more.
        Err(_) => status::INVALID_VALUE,
    }
}

/// Tells the workspace of a routine of the generic interface, whose numbers have `data_type`. None is
/// needed on the host.
fn needs_bytes(
    handle: Handle,
    elements: u64,
    data_type: i32,
    on_device: Out<usize>,
    on_host: Out<usize>,
) -> i32 {
    if HANDLES.get(handle).is_none() {
        return status::NOT_INITIALIZED;
    }
    // The types that cuSOLVER's letters S, D, C and Z stand for.
    let taken = matches!(data_type, 0 | 1 | 4 | 5);
    let Some(bytes) = data_type::bytes(data_type).filter(|_| taken) else {
        let name = cuda_name(data_type);
        activity::not_implemented(format!("cuSOLVER with numbers of type {name} ({data_type})"));
        return status::NOT_SUPPORTED;
    };
    activity::estimate(workspace::BASIS);
    let bytes = elements.saturating_mul(bytes);
    if i64::try_from(bytes).is_err() {
        return status::INVALID_VALUE;
    }
    on_device.set(bytes as usize);
    on_host.set(0);
    status::SUCCESS
}

/// A dimension, which LAPACK has as a signed number.
fn size(dimension: impl Into<i64>) -> u64 {
    dimension.into().max(0).unsigned_abs()
}

fn create(handle: Out<*mut c_void>) -> i32 {
    if handle.is_null() {
        return status::INVALID_VALUE;
    }
    handle.set(PARAMETERS.insert(()));
    status::SUCCESS
}

fn known(parameters: *mut c_void) -> i32 {
    if PARAMETERS.get(parameters).is_some() { status::SUCCESS } else { status::INVALID_VALUE }
}

fn destroy(parameters: *mut c_void) -> i32 {
    if parameters.is_null() || PARAMETERS.remove(parameters) {
        status::SUCCESS
    } else {
        status::INVALID_VALUE
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cusolverDnCreate(handle: Out<*mut c_void>) -> i32 {
        match HANDLES.open(handle) {
            Ok(()) => status::SUCCESS,
            Err(NotOpened::NullPointer) => status::INVALID_VALUE,
            Err(NotOpened::NoDevice) => status::NOT_INITIALIZED,
            Err(NotOpened::NoMemory) => status::ALLOC_FAILED,
        }
    }

    fn cusolverDnDestroy(handle: Handle) -> i32 {
        if HANDLES.remove(handle) { status::SUCCESS } else { status::NOT_INITIALIZED }
    }

    fn cusolverDnSetStream(handle: Handle, stream: *mut c_void) -> i32 {
        let Some(own) = HANDLES.get(handle) else { return status::NOT_INITIALIZED };
        own.set(stream);
        status::SUCCESS
    }

    fn cusolverDnCreateParams(parameters: Out<*mut c_void>) -> i32 {
        create(parameters)
    }

    fn cusolverDnDestroyParams(parameters: *mut c_void) -> i32 {
        destroy(parameters)
    }

    fn cusolverDnCreateSyevjInfo(parameters: Out<*mut c_void>) -> i32 {
        create(parameters)
    }

    fn cusolverDnDestroySyevjInfo(parameters: *mut c_void) -> i32 {
        destroy(parameters)
    }

    fn cusolverDnCreateGesvdjInfo(parameters: Out<*mut c_void>) -> i32 {
        create(parameters)
    }

    fn cusolverDnDestroyGesvdjInfo(parameters: *mut c_void) -> i32 {
        destroy(parameters)
    }

    fn cusolverDnXgesvdjSetMaxSweeps(parameters: *mut c_void, _sweeps: i32) -> i32 {
        known(parameters)
    }

    fn cusolverDnXgesvdjSetSortEig(parameters: *mut c_void, _sort: i32) -> i32 {
        known(parameters)
    }

    fn cusolverDnXgesvdjSetTolerance(parameters: *mut c_void, _tolerance: f64) -> i32 {
        known(parameters)
    }

    fn cusolverDnXsyevjSetSortEig(parameters: *mut c_void, _sort: i32) -> i32 {
        known(parameters)
    }
}
