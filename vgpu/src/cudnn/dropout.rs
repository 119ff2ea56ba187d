//! cuDNN's dropout descriptors, which PyTorch makes for recurrent networks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use super::descriptors::{create, destroy};
use super::{HANDLES, launched, status};
use crate::entry::{Out, entry_points};
use crate::handles::Handles;
use crate::{activity, device};

/// What the report says of the states.
const BASIS: &str = "cuDNN dropout states: 48 bytes for each thread the device can hold, a few MiB \
                     made once; their number is not documented";

/// Size of `curandStateXORWOW` (curand_kernel.h), cuDNN's kind of generator.
const STATE_BYTES: usize = 48;

/// Each holds the bits of its probability.
static DROPOUTS: Handles<AtomicU32> = Handles::new();

/// Whether a descriptor drops anything. Null stands for none.
pub(super) fn drops(descriptor: *mut c_void) -> bool {
    DROPOUTS.get(descriptor).is_some_and(|own| f32::from_bits(own.load(Ordering::Relaxed)) > 0.0)
}

fn set(descriptor: *mut c_void, handle: *mut c_void, probability: f32) -> i32 {
    if HANDLES.get(handle).is_none() {
        return status::NOT_INITIALIZED;
    }
    match DROPOUTS.get(descriptor) {
        Some(own) => {
            own.store(probability.to_bits(), Ordering::Relaxed);
            status::SUCCESS
        }
        None => status::BAD_PARAM,
    }
}

entry_points! { on_panic = status::INTERNAL_ERROR;
    fn cudnnCreateDropoutDescriptor(descriptor: Out<*mut c_void>) -> i32 {
        create(&DROPOUTS, descriptor, AtomicU32::new(0))
    }

    fn cudnnDestroyDropoutDescriptor(descriptor: *mut c_void) -> i32 {
        destroy(&DROPOUTS, descriptor)
    }

    fn cudnnDropoutGetStatesSize(_handle: *mut c_void, bytes: Out<usize>) -> i32 {
        let machine = device::machine();
        let Some(device) = machine.and_then(|it| it.device(device::current())) else {
            return status::NOT_INITIALIZED;
        };
        let threads = device.multiprocessors * device.threads_per_multiprocessor;
        activity::estimate(BASIS);
        bytes.set(threads.unsigned_abs() as usize * STATE_BYTES);
        status::SUCCESS
    }

    /// Without states there is nothing to initialise, which is how PyTorch asks for no dropout.
    fn cudnnSetDropoutDescriptor(descriptor: *mut c_void, handle: *mut c_void, probability: f32,
        states: *mut c_void, _bytes: usize, _seed: u64) -> i32 {
        match set(descriptor, handle, probability) {
            status::SUCCESS if !states.is_null() => launched("cudnnSetDropoutDescriptor", handle),
            outcome => outcome,
        }
    }

    fn cudnnRestoreDropoutDescriptor(descriptor: *mut c_void, handle: *mut c_void, probability: f32,
        _states: *mut c_void, _bytes: usize, _seed: u64) -> i32 {
        set(descriptor, handle, probability)
    }
}
