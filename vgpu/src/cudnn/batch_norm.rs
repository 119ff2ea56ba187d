//! cuDNN's batch normalization: its calls are counted, its extra memory is taken to be none.
//!
//! That is an estimate. cuDNN works these sizes out for a handle, which takes a device. For plain
//! normalization (`CUDNN_BATCHNORM_OPS_BN`, the only one PyTorch asks for) cuDNN 9.19 asked without a
//! device answers zero for all three, in both spatial modes, single and half precision, NCHW and NHWC;
//! and zero fits the one published measurement we could compare with, that of a ResNet-101, within half
//! a percent.

use std::ffi::c_void;

use vramfit_vgpu_cost::Work;

use super::descriptors::shape;
use super::{HANDLES, asks, launch, status};
use crate::activity;
use crate::entry::{Out, entry_points};

type Descriptor = *mut c_void;
type Data = *const c_void;

/// What the report says of the sizes.
const BASIS: &str = "cuDNN batch norm workspace and reserve: none, as cuDNN 9.19 answers without a device; \
                     not compared with a card";

/// `CUDNN_BATCHNORM_OPS_BN`: nothing fused into the normalization.
const PLAIN: i32 = 0;

/// Answers a size query for operations `operations`; fused ones are not known.
fn no_extra_memory(
    call: &'static str,
    handle: *mut c_void,
    operations: i32,
    bytes: Out<usize>,
) -> i32 {
    if HANDLES.get(handle).is_none() {
        return status::NOT_INITIALIZED;
    }
    bytes.set(0);
    if operations != PLAIN {
        activity::not_implemented(call);
        return status::NOT_SUPPORTED;
    }
    activity::estimate(BASIS);
    status::SUCCESS
}

/// Counts one launch of `call` that touches `passes` tensors of the shape of `x`.
fn normalized(call: &'static str, handle: *mut c_void, x: Descriptor, passes: u64) -> i32 {
    let work = shape(x).map_or(Work::Unknown, |shape| {
        let elements = shape.dimensions.iter().map(|size| u64::from(size.unsigned_abs())).product();
        asks::norm(passes, elements, shape.data_type)
    });
    launch(call, work, handle, move || activity::launched(call))
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle: *mut c_void, _mode: i32,
        operations: i32, _x: Descriptor, _z: Descriptor, _y: Descriptor, _scale: Descriptor,
        _activation: Descriptor, bytes: Out<usize>) -> i32 {
        no_extra_memory("cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize", handle, operations, bytes)
    }

    fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle: *mut c_void, _mode: i32, operations: i32,
        _x: Descriptor, _y: Descriptor, _dy: Descriptor, _dz: Descriptor, _dx: Descriptor,
        _scale: Descriptor, _activation: Descriptor, bytes: Out<usize>) -> i32 {
        no_extra_memory("cudnnGetBatchNormalizationBackwardExWorkspaceSize", handle, operations, bytes)
    }

    fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle: *mut c_void, _mode: i32,
        operations: i32, _activation: Descriptor, _x: Descriptor, bytes: Out<usize>) -> i32 {
        no_extra_memory("cudnnGetBatchNormalizationTrainingExReserveSpaceSize", handle, operations, bytes)
    }

    fn cudnnBatchNormalizationForwardTrainingEx(handle: *mut c_void, _mode: i32, _operations: i32,
        _alpha: Data, _beta: Data, x_descriptor: Descriptor, _x: Data, _z_descriptor: Descriptor,
        _z: Data, _y_descriptor: Descriptor, _y: Data, _scale_descriptor: Descriptor, _scale: Data,
        _bias: Data, _factor: f64, _running_mean: Data, _running_variance: Data, _epsilon: f64,
        _save_mean: Data, _save_variance: Data, _activation: Descriptor, _workspace: Data,
        _workspace_bytes: usize, _reserve: Data, _reserve_bytes: usize) -> i32 {
        normalized("cudnnBatchNormalizationForwardTrainingEx", handle, x_descriptor, 2)
    }

    fn cudnnBatchNormalizationBackwardEx(handle: *mut c_void, _mode: i32, _operations: i32,
        _alpha_data: Data, _beta_data: Data, _alpha_parameters: Data, _beta_parameters: Data,
        x_descriptor: Descriptor, _x: Data, _y_descriptor: Descriptor, _y: Data,
        _dy_descriptor: Descriptor, _dy: Data, _dz_descriptor: Descriptor, _dz: Data,
        _dx_descriptor: Descriptor, _dx: Data, _scale_descriptor: Descriptor, _scale: Data, _bias: Data,
        _d_scale: Data, _d_bias: Data, _epsilon: f64, _saved_mean: Data, _saved_variance: Data,
        _activation: Descriptor, _workspace: Data, _workspace_bytes: usize, _reserve: Data,
        _reserve_bytes: usize) -> i32 {
        normalized("cudnnBatchNormalizationBackwardEx", handle, x_descriptor, 3)
    }

    fn cudnnBatchNormalizationForwardInference(handle: *mut c_void, _mode: i32, _alpha: Data, _beta: Data,
        x_descriptor: Descriptor, _x: Data, _y_descriptor: Descriptor, _y: Data,
        _scale_descriptor: Descriptor, _scale: Data, _bias: Data, _mean: Data, _variance: Data,
        _epsilon: f64) -> i32 {
        normalized("cudnnBatchNormalizationForwardInference", handle, x_descriptor, 2)
    }
}
