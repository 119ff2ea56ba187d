//! cuDNN's graph interface: every call goes to NVIDIA's own library, which is given the properties of
//! the virtual device where it would ask the driver. Only the execution is left out.

use std::ffi::c_void;

use vramfit_vgpu_cost::Work;

use super::real::{Descriptor, Real, library};
use super::{graph, modelled};
use super::{launch, properties, status};
use crate::activity;
use crate::entry::entry_points;

/// Values of `cudnnBackendDescriptorType_t`.
pub(super) mod kind {
    pub(crate) const ENGINE: i32 = 2;
    pub(crate) const ENGINE_CONFIG: i32 = 3;
    pub(crate) const ENGINE_HEURISTICS: i32 = 4;
    pub(crate) const EXECUTION_PLAN: i32 = 5;
    pub(crate) const OPERATION_GRAPH: i32 = 15;
    pub(crate) const TENSOR: i32 = 17;
    pub(crate) const DEVICE_PROPERTIES: i32 = 38;
}

/// Values of `cudnnBackendAttributeName_t`.
pub(super) mod attribute {
    pub(crate) const HEURISTICS_OPERATION_GRAPH: i32 = 201;
    pub(crate) const HEURISTICS_RESULTS: i32 = 202;
    pub(crate) const HEURISTICS_DEVICE_PROPERTIES: i32 = 204;
    pub(crate) const CONFIG_ENGINE: i32 = 300;
    pub(crate) const CONFIG_WORKSPACE_SIZE: i32 = 303;
    pub(crate) const PLAN_HANDLE: i32 = 400;
    pub(crate) const PLAN_ENGINE_CONFIG: i32 = 401;
    pub(crate) const PLAN_WORKSPACE_SIZE: i32 = 402;
    pub(crate) const PLAN_DEVICE_PROPERTIES: i32 = 407;
    pub(crate) const GRAPH_HANDLE: i32 = 800;
    pub(crate) const GRAPH_OPERATIONS: i32 = 801;
    pub(crate) const TENSOR_DATA_TYPE: i32 = 901;
    pub(crate) const TENSOR_DIMENSIONS: i32 = 902;
    pub(crate) const TENSOR_STRIDES: i32 = 903;
    pub(crate) const ENGINE_OPERATION_GRAPH: i32 = 1300;
    pub(crate) const ENGINE_GLOBAL_INDEX: i32 = 1301;
    pub(crate) const ENGINE_NUMERICAL_NOTES: i32 = 1303;
    pub(crate) const ENGINE_DEVICE_PROPERTIES: i32 = 1307;
}

/// Values of `cudnnBackendAttributeType_t`.
pub(super) mod value_type {
    pub(crate) const HANDLE: i32 = 0;
    pub(crate) const DATA_TYPE: i32 = 1;
    pub(crate) const INT64: i32 = 3;
    pub(crate) const BACKEND_DESCRIPTOR: i32 = 15;
    pub(crate) const CHAR: i32 = 24;
}

/// Gives `descriptor` the properties of the device, where one of its kind asks for them.
fn give_properties(real: &Real, descriptor: Descriptor, kind: i32) -> Result<(), i32> {
    let attribute = match kind {
        kind::ENGINE => attribute::ENGINE_DEVICE_PROPERTIES,
        kind::ENGINE_HEURISTICS => attribute::HEURISTICS_DEVICE_PROPERTIES,
        kind::EXECUTION_PLAN => attribute::PLAN_DEVICE_PROPERTIES,
        _ => return Ok(()),
    };
    let properties = properties::of_current_device(real)?;
    let value = (&raw const properties).cast();
    match (real.set)(descriptor, attribute, value_type::BACKEND_DESCRIPTOR, 1, value) {
        status::SUCCESS => Ok(()),
        refused => Err(refused),
    }
}

/// What the engine configuration `config` says it needs; building the plan would say the same, but
/// compiles kernels for seconds.
fn workspace_of(real: &Real, config: Descriptor) -> Option<i64> {
    let (mut bytes, mut count) = (0_i64, 0_i64);
    let status = (real.get)(
        config,
        attribute::CONFIG_WORKSPACE_SIZE,
        value_type::INT64,
        1,
        &raw mut count,
        (&raw mut bytes).cast(),
    );
    (status == status::SUCCESS && count == 1).then_some(bytes)
}

fn finalize(real: &Real, descriptor: Descriptor) -> i32 {
    let kind = graph::kind_of(descriptor);
    if kind == Some(kind::EXECUTION_PLAN)
        && let Some(config) = graph::config_of_plan(descriptor)
        && let Some(bytes) = workspace_of(real, config)
    {
        graph::finalized_plan(descriptor, bytes);
        return status::SUCCESS;
    }
    if let Err(refused) = kind.map_or(Ok(()), |kind| give_properties(real, descriptor, kind)) {
        return refused;
    }
    let status = (real.finalize)(descriptor);
    if status == status::SUCCESS {
        graph::finalized(descriptor);
    }
    status
}

/// Reads the array of `count` values that an attribute is set to.
pub(super) fn values<'a, T>(count: i64, array: *const c_void) -> &'a [T] {
    match usize::try_from(count) {
        Ok(count) if count > 0 && !array.is_null() && array.cast::<T>().is_aligned() => {
            // SAFETY: the interface asks for an array of `count` values of the attribute's type, and
            // the call that reads it returns before the caller can free it.
            unsafe { std::slice::from_raw_parts(array.cast(), count) }
        }
        _ => &[],
    }
}

/// Notes what the report needs to know about a descriptor.
fn note_attribute(
    descriptor: Descriptor,
    attribute: i32,
    value_type: i32,
    count: i64,
    array: *const c_void,
) {
    match (value_type, attribute) {
        (value_type::BACKEND_DESCRIPTOR, _) => {
            graph::link(descriptor, attribute, values::<usize>(count, array));
        }
        (value_type::INT64, attribute::TENSOR_DIMENSIONS) => {
            graph::dimensions(descriptor, values::<i64>(count, array));
        }
        (value_type::INT64, attribute::TENSOR_STRIDES) => {
            graph::strides(descriptor, values::<i64>(count, array));
        }
        (value_type::DATA_TYPE, attribute::TENSOR_DATA_TYPE) => {
            if let [data_type] = values::<i32>(count, array) {
                graph::data_type(descriptor, *data_type);
            }
        }
        _ => {}
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnBackendCreateDescriptor(kind: i32, descriptor: *mut Descriptor) -> i32 {
        if descriptor.is_null() {
            return status::BAD_PARAM_NULL_POINTER;
        }
        let status = match library() {
            Some(real) => (real.create)(kind, descriptor),
            None => {
                // SAFETY: an out-pointer of the caller's, not null.
                unsafe { *descriptor = modelled::create(kind) };
                status::SUCCESS
            }
        };
        if status == status::SUCCESS {
            // SAFETY: written above, or by cuDNN, which succeeded.
            graph::created(unsafe { *descriptor }, kind);
        }
        status
    }

    fn cudnnBackendDestroyDescriptor(descriptor: Descriptor) -> i32 {
        // First, since cuDNN may hand the same address out again at once.
        graph::destroyed(descriptor);
        match library() {
            Some(real) => (real.destroy)(descriptor),
            None => modelled::destroy(descriptor),
        }
    }

    fn cudnnBackendSetAttribute(descriptor: Descriptor, attribute: i32, value_type: i32, count: i64,
        array: *const c_void) -> i32 {
        // Handles are this library's own; the device they stand for is given at finalization.
        if value_type == value_type::HANDLE
            || matches!(attribute, attribute::PLAN_HANDLE | attribute::GRAPH_HANDLE) {
            return status::SUCCESS;
        }
        let status = match library() {
            Some(real) => (real.set)(descriptor, attribute, value_type, count, array),
            None => modelled::set(descriptor, attribute, value_type, count, array),
        };
        if status == status::SUCCESS {
            note_attribute(descriptor, attribute, value_type, count, array);
        }
        status
    }

    fn cudnnBackendGetAttribute(descriptor: Descriptor, attribute: i32, value_type: i32, requested: i64,
        count: *mut i64, array: *mut c_void) -> i32 {
        if let Some(bytes) = graph::workspace_of_plan(descriptor) {
            return plan_attribute(bytes, attribute, value_type, requested, count, array);
        }
        let Some(real) = library() else {
            return modelled::get(descriptor, attribute, requested, count, array);
        };
        let status = (real.get)(descriptor, attribute, value_type, requested, count, array);
        let passes_on = matches!(attribute, attribute::HEURISTICS_RESULTS | attribute::CONFIG_ENGINE);
        if status == status::SUCCESS && passes_on && !count.is_null() {
            // SAFETY: cuDNN succeeded, so it wrote the count.
            let found = unsafe { *count }.min(requested);
            graph::passed_on(descriptor, values::<usize>(found, array));
        }
        status
    }

    fn cudnnBackendFinalize(descriptor: Descriptor) -> i32 {
        match library() {
            Some(real) => finalize(real, descriptor),
            None => modelled::finalize(descriptor),
        }
    }

    /// Counts the plan's work; nothing is computed.
    fn cudnnBackendExecute(handle: *mut c_void, plan: Descriptor, _variant_pack: Descriptor) -> i32 {
        let shape = graph::work_of_plan(plan);
        let call = shape.as_ref().map_or("cudnnBackendExecute", |shape| shape.operation);
        launch(call, Work::Unknown, handle, move || match &shape {
            Some(shape) => activity::convolution(shape.clone()),
            None => activity::launched("cudnnBackendExecute"),
        })
    }
}

/// An attribute of a plan that was never built. Only its workspace is known.
fn plan_attribute(
    workspace: i64,
    attribute: i32,
    value_type: i32,
    requested: i64,
    count: *mut i64,
    array: *mut c_void,
) -> i32 {
    if attribute != attribute::PLAN_WORKSPACE_SIZE || value_type != value_type::INT64 {
        activity::not_implemented("cudnnBackendGetAttribute of a plan, other than its workspace");
        return status::NOT_SUPPORTED;
    }
    if !count.is_null() {
        // SAFETY: an out-pointer of the caller's, not null.
        unsafe { *count = 1 };
    }
    if requested > 0 && !array.is_null() {
        // SAFETY: the caller's array holds `requested` values of 8 bytes.
        unsafe { *array.cast::<i64>() = workspace };
    }
    status::SUCCESS
}
