//! cuDNN's spatial transformer (`grid_sample`, `affine_grid`): counted, not computed. It asks for no
//! memory of its own.

use std::ffi::c_void;

use super::launched;
use crate::entry::entry_points;

type Descriptor = *mut c_void;
type Data = *const c_void;

entry_points! { on_panic = super::status::INTERNAL_ERROR;
    fn cudnnSpatialTfGridGeneratorForward(handle: *mut c_void, _transformer: Descriptor, _theta: Data,
        _grid: Data) -> i32 {
        launched("cudnnSpatialTfGridGeneratorForward", handle)
    }

    fn cudnnSpatialTfGridGeneratorBackward(handle: *mut c_void, _transformer: Descriptor, _d_grid: Data,
        _d_theta: Data) -> i32 {
        launched("cudnnSpatialTfGridGeneratorBackward", handle)
    }

    fn cudnnSpatialTfSamplerForward(handle: *mut c_void, _transformer: Descriptor, _alpha: Data,
        _x_descriptor: Descriptor, _x: Data, _grid: Data, _beta: Data, _y_descriptor: Descriptor,
        _y: Data) -> i32 {
        launched("cudnnSpatialTfSamplerForward", handle)
    }

    fn cudnnSpatialTfSamplerBackward(handle: *mut c_void, _transformer: Descriptor, _alpha: Data,
        _x_descriptor: Descriptor, _x: Data, _beta: Data, _dx_descriptor: Descriptor, _dx: Data,
        _alpha_grid: Data, _dy_descriptor: Descriptor, _dy: Data, _grid: Data, _beta_grid: Data,
        _d_grid: Data) -> i32 {
        launched("cudnnSpatialTfSamplerBackward", handle)
    }
}
