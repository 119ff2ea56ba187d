//! Descriptors of cuDNN's older interface: they remember what they were given.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use super::status;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;

/// `CUDNN_DIM_MAX`.
const MOST_DIMENSIONS: usize = 8;
/// `CUDNN_TENSOR_NCHW`.
const NCHW: i32 = 0;

/// What a tensor's or a filter's descriptor holds.
#[derive(Clone, Default)]
pub(super) struct Shape {
    pub(super) data_type: i32,
    pub(super) format: i32,
    pub(super) dimensions: Vec<i32>,
    pub(super) strides: Vec<i32>,
}

impl Shape {
    /// A packed tensor, the last dimension innermost.
    pub(super) fn packed(data_type: i32, dimensions: &[i32]) -> Self {
        let mut strides = vec![1; dimensions.len()];
        for axis in (1..dimensions.len()).rev() {
            strides[axis - 1] = strides[axis] * dimensions[axis];
        }
        Self { data_type, format: NCHW, dimensions: dimensions.to_vec(), strides }
    }
}

static SHAPES: Handles<Mutex<Shape>> = Handles::new();
/// Descriptors of which nothing is ever read: activation, spatial transformer.
static OTHERS: Handles<()> = Handles::new();

pub(super) fn create<T>(table: &'static Handles<T>, descriptor: Out<*mut c_void>, value: T) -> i32 {
    if descriptor.is_null() {
        return status::BAD_PARAM_NULL_POINTER;
    }
    descriptor.set(table.insert(value));
    status::SUCCESS
}

pub(super) fn destroy<T>(table: &Handles<T>, descriptor: *mut c_void) -> i32 {
    if descriptor.is_null() || table.remove(descriptor) {
        status::SUCCESS
    } else {
        status::BAD_PARAM
    }
}

fn known(descriptor: *mut c_void) -> i32 {
    if OTHERS.get(descriptor).is_some() { status::SUCCESS } else { status::BAD_PARAM }
}

/// Reads the caller's array of `count` numbers.
fn numbers(count: i32, array: *const i32) -> Option<Vec<i32>> {
    let count =
        usize::try_from(count).ok().filter(|count| (1..=MOST_DIMENSIONS).contains(count))?;
    if array.is_null() {
        return None;
    }
    // SAFETY: the interface asks for an array of `count` numbers, at most 8.
    Some(unsafe { std::slice::from_raw_parts(array, count) }.to_vec())
}

/// Writes as many of `numbers` as the caller's array has room for.
fn write_numbers(numbers: &[i32], room: i32, array: *mut i32) {
    let count = usize::try_from(room).unwrap_or_default().min(numbers.len());
    if !array.is_null() {
        // SAFETY: the caller's array has room for `room` numbers, of which no more are written.
        unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), array, count) };
    }
}

pub(super) fn set_shape(descriptor: *mut c_void, shape: Option<Shape>) -> i32 {
    match (SHAPES.get(descriptor), shape) {
        (Some(own), Some(shape)) => {
            *own.lock().unwrap_or_else(PoisonError::into_inner) = shape;
            status::SUCCESS
        }
        _ => status::BAD_PARAM,
    }
}

pub(super) fn shape(descriptor: *mut c_void) -> Option<Shape> {
    let own = SHAPES.get(descriptor)?;
    Some(own.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnCreateTensorDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&SHAPES, descriptor, Mutex::default())
    }

    fn cudnnDestroyTensorDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&SHAPES, descriptor)
    }

    fn cudnnSetTensorNdDescriptor(descriptor: *mut c_void, data_type: i32, count: i32,
        dimensions: *const i32, strides: *const i32) -> i32 {
        let shape = numbers(count, dimensions).zip(numbers(count, strides));
        set_shape(descriptor, shape.map(|(dimensions, strides)| Shape {
            data_type, format: NCHW, dimensions, strides,
        }))
    }

    fn cudnnGetTensorNdDescriptor(descriptor: *mut c_void, room: i32, data_type: Out<i32>,
        count: Out<i32>, dimensions: *mut i32, strides: *mut i32) -> i32 {
        let Some(shape) = shape(descriptor) else { return status::BAD_PARAM };
        data_type.set(shape.data_type);
        count.set(shape.dimensions.len() as i32);
        write_numbers(&shape.dimensions, room, dimensions);
        write_numbers(&shape.strides, room, strides);
        status::SUCCESS
    }

    fn cudnnCreateFilterDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&SHAPES, descriptor, Mutex::default())
    }

    fn cudnnDestroyFilterDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&SHAPES, descriptor)
    }

    fn cudnnSetFilterNdDescriptor(descriptor: *mut c_void, data_type: i32, format: i32, count: i32,
        dimensions: *const i32) -> i32 {
        set_shape(descriptor, numbers(count, dimensions).map(|dimensions| Shape {
            data_type, format, dimensions, strides: Vec::new(),
        }))
    }

    fn cudnnGetFilterNdDescriptor(descriptor: *mut c_void, room: i32, data_type: Out<i32>,
        format: Out<i32>, count: Out<i32>, dimensions: *mut i32) -> i32 {
        let Some(shape) = shape(descriptor) else { return status::BAD_PARAM };
        data_type.set(shape.data_type);
        format.set(shape.format);
        count.set(shape.dimensions.len() as i32);
        write_numbers(&shape.dimensions, room, dimensions);
        status::SUCCESS
    }

    fn cudnnCreateActivationDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&OTHERS, descriptor, ())
    }

    fn cudnnDestroyActivationDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&OTHERS, descriptor)
    }

    fn cudnnSetActivationDescriptor(descriptor: *mut c_void, _mode: i32, _nan: i32, _coefficient: f64) -> i32 {
        known(descriptor)
    }

    fn cudnnCreateSpatialTransformerDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&OTHERS, descriptor, ())
    }

    fn cudnnDestroySpatialTransformerDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&OTHERS, descriptor)
    }

    fn cudnnSetSpatialTransformerNdDescriptor(descriptor: *mut c_void, _sampler: i32, _data_type: i32,
        _count: i32, _dimensions: *const i32) -> i32 {
        known(descriptor)
    }
}
