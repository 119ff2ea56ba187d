//! cuDNN's CTC loss: the workspace is estimated, calls are counted.
//!
//! PyTorch takes it for labels on the CPU, all inputs of one length and labels shorter than 256
//! (`_use_cudnn_ctc_loss`); else it computes the loss with kernels of its own.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};

use super::descriptors::{Shape, create, destroy, shape};
use super::{HANDLES, launched, status};
use crate::activity;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;

/// What the report says of the workspace.
const BASIS: &str = "cuDNN CTC workspace: the probabilities, and two tables of one number for each time \
                     step and state of the extended label (2 x label + 1), as the forward-backward \
                     algorithm takes; cuDNN's own layout is not documented";

type Descriptor = *mut c_void;
type Data = *const c_void;

/// Longest label that cuDNN takes.
const LONGEST: i32 = 255;

/// Each holds the length of its longest label.
static LOSSES: Handles<AtomicI32> = Handles::new();

fn set(descriptor: Descriptor, longest: i32) -> i32 {
    match LOSSES.get(descriptor) {
        Some(own) => {
            own.store(longest, Ordering::Relaxed);
            status::SUCCESS
        }
        None => status::BAD_PARAM,
    }
}

/// Bytes for `probabilities` of steps × batch × classes in single precision.
fn workspace_bytes(probabilities: &Shape, longest: i32) -> Option<usize> {
    let [steps, batch, classes] = probabilities.dimensions[..] else { return None };
    let size = |length: i32| length.unsigned_abs() as usize;
    let states = 2 * size(longest) + 1;
    Some(size(steps) * size(batch) * (size(classes) + 2 * states) * size_of::<f32>())
}

fn answer(handle: *mut c_void, probabilities: Descriptor, longest: i32, bytes: Out<usize>) -> i32 {
    if HANDLES.get(handle).is_none() {
        return status::NOT_INITIALIZED;
    }
    match shape(probabilities).and_then(|shape| workspace_bytes(&shape, longest)) {
        Some(size) => {
            activity::estimate(BASIS);
            bytes.set(size);
            status::SUCCESS
        }
        None => status::BAD_PARAM,
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnCreateCTCLossDescriptor(descriptor: Out<Descriptor>) -> i32 {
        create(&LOSSES, descriptor, AtomicI32::new(LONGEST))
    }

    fn cudnnDestroyCTCLossDescriptor(descriptor: Descriptor) -> i32 {
        destroy(&LOSSES, descriptor)
    }

    fn cudnnSetCTCLossDescriptorEx(descriptor: Descriptor, _compute_type: i32, _normalization: i32,
        _gradient: i32) -> i32 {
        set(descriptor, LONGEST)
    }

    fn cudnnSetCTCLossDescriptor_v8(descriptor: Descriptor, _compute_type: i32, _normalization: i32,
        _gradient: i32, longest: i32) -> i32 {
        set(descriptor, longest)
    }

    fn cudnnSetCTCLossDescriptor_v9(descriptor: Descriptor, _compute_type: i32, _normalization: i32,
        _gradient: i32, longest: i32) -> i32 {
        set(descriptor, longest)
    }

    fn cudnnGetCTCLossWorkspaceSize(handle: *mut c_void, probabilities: Descriptor, _gradients: Descriptor,
        _labels: *const i32, label_lengths: *const i32, _input_lengths: *const i32, _algorithm: i32,
        _loss: Descriptor, bytes: Out<usize>) -> i32 {
        let batch = shape(probabilities).and_then(|shape| shape.dimensions.get(1).copied());
        let Some(batch) = batch.and_then(|batch| usize::try_from(batch).ok()) else {
            return status::BAD_PARAM;
        };
        if label_lengths.is_null() {
            return status::BAD_PARAM_NULL_POINTER;
        }
        // SAFETY: the interface asks for one length for each sequence of the batch, on the host.
        let lengths = unsafe { std::slice::from_raw_parts(label_lengths, batch) };
        answer(handle, probabilities, lengths.iter().copied().max().unwrap_or_default(), bytes)
    }

    fn cudnnGetCTCLossWorkspaceSize_v8(handle: *mut c_void, _algorithm: i32, loss: Descriptor,
        probabilities: Descriptor, _gradients: Descriptor, bytes: Out<usize>) -> i32 {
        let longest = LOSSES.get(loss).map_or(LONGEST, |own| own.load(Ordering::Relaxed));
        answer(handle, probabilities, longest, bytes)
    }

    /// Of this and the next, only the leading arguments are declared; the C ABI lets a function leave
    /// the others alone.
    fn cudnnCTCLoss(handle: *mut c_void, _probabilities: Descriptor, _data: Data) -> i32 {
        launched("cudnnCTCLoss", handle)
    }

    fn cudnnCTCLoss_v8(handle: *mut c_void, _algorithm: i32, _loss: Descriptor) -> i32 {
        launched("cudnnCTCLoss", handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_holds_probabilities_and_two_tables_of_states() {
        let probabilities = Shape::packed(0, &[100, 8, 30]);
        assert_eq!(workspace_bytes(&probabilities, 20), Some(100 * 8 * (30 + 2 * 41) * 4));
        assert_eq!(workspace_bytes(&Shape::packed(0, &[100, 8]), 20), None);
    }
}
