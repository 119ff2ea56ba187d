//! Checkpointed blocks: see shim/checkpoint.cpp for how they work.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tch::{TchError, Tensor};
use torch_sys::C_tensor;

use super::check;
use crate::failure;

type Run = extern "C" fn(*mut c_void, *mut C_tensor, *mut c_void) -> c_int;
type Release = extern "C" fn(*mut c_void);

// SAFETY: the signatures are those of shim/checkpoint.cpp.
unsafe extern "C" {
    fn vf_checkpoint_install() -> c_int;
    fn vf_checkpoint_begin(
        input: *const C_tensor,
        run: Run,
        release: Release,
        block: *mut c_void,
    ) -> c_int;
    fn vf_checkpoint_end();
    fn vf_checkpoint_explain(failure: *mut c_void, text: *const c_char, size: usize);
}

/// A block of a model: a function of one tensor that may be run again on another thread.
pub(crate) type Block = Box<dyn Fn(&Tensor) -> Tensor + Send>;

/// Gives libtorch an autograd engine that knows of checkpointed blocks. To be called once, before
/// the first backward pass.
///
/// # Errors
/// libtorch's own.
pub(crate) fn install() -> Result<(), TchError> {
    // SAFETY: no argument to get wrong; no backward pass has started an engine's threads yet.
    check(unsafe { vf_checkpoint_install() })
}

/// Runs `block` on `input` such that its activations are not kept but computed again in the
/// backward pass, with the random numbers and the autocast state of now.
///
/// # Errors
/// libtorch's own; a failure inside `block` panics, as tch's operators do.
pub(crate) fn checkpointed(block: Block, input: &Tensor) -> Result<Tensor, TchError> {
    let block = Box::into_raw(Box::new(block));
    // SAFETY: `block` came from a box, `input` is a live handle. The shim owns the block from here
    // on and releases it once, at the earliest in `Recording::drop`.
    check(unsafe { vf_checkpoint_begin(input.as_ptr(), run, release, block.cast()) })?;
    let _recording = Recording;
    // SAFETY: the frame being recorded keeps the block until `_recording` is dropped.
    Ok(unsafe { (*block)(input) })
}

/// Ends the recording of a frame, also when the block panics.
struct Recording;

impl Drop for Recording {
    fn drop(&mut self) {
        // SAFETY: clears a thread-local.
        unsafe { vf_checkpoint_end() }
    }
}

extern "C" fn run(block: *mut c_void, input: *mut C_tensor, failure: *mut c_void) -> c_int {
    // SAFETY: the shim passes the pointer that `checkpointed` gave it, not released yet, and a
    // handle that is ours from here on. Blocks are `Send`, and the thread that made this one waits
    // for the backward pass.
    let (block, input) = unsafe { (&*block.cast_const().cast::<Block>(), Tensor::from_ptr(input)) };
    match catch_unwind(AssertUnwindSafe(|| drop(block(&input)))) {
        Ok(()) => 0,
        Err(panic) => {
            let text = failure::text_of_panic(panic.as_ref());
            // SAFETY: `failure` is the shim's; the text outlives the call.
            unsafe { vf_checkpoint_explain(failure, text.as_ptr().cast(), text.len()) };
            1
        }
    }
}

extern "C" fn release(block: *mut c_void) {
    // SAFETY: the shim releases the pointer that `checkpointed` gave it exactly once.
    let block = unsafe { Box::from_raw(block.cast::<Block>()) };
    // Dropping tensors does not panic; if it did, the panic must not cross into C++.
    if catch_unwind(AssertUnwindSafe(|| drop(block))).is_err() {
        std::process::abort();
    }
}
