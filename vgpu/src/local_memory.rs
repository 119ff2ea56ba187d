//! Local memory: where the registers that kernels spill, and their stacks, lie. An estimate.
//!
//! The driver keeps one such range a context, for as many threads as the device holds at once, and
//! enlarges it when a kernel is launched that needs more a thread: (local memory a thread, rounded up to
//! 128 or 256 bytes) × threads of a multiprocessor × multiprocessors, as NVIDIA says at
//! <https://forums.developer.nvidia.com/t/memory-required-for-kernel-launch/39558>. It is not made
//! smaller again (`cudaDeviceLmemResizeToMax` of the runtime's manual: now the default, and cannot be
//! turned off). A context begins with room for a stack of 1 KiB (`cudaLimitStackSize`), which the figure
//! for the context holds with what else the driver keeps a thread; what goes beyond is charged here.
//!
//! Only kernels whose machine code is read (`cubin.rs`) come here: those of Triton and NVRTC.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use vramfit_vgpu_schema::Description;

use crate::memory::OutOfMemory;
use crate::{activity, device, memory};

/// Bytes a thread in the figure for the context, and the unit in which more are added.
const FIRST: u64 = 1 << 10;
const UNIT: u64 = 256;

/// What is held beyond the context's own.
struct Held {
    a_thread: u64,
    /// Address of it.
    place: usize,
}

static HELD: [Mutex<Held>; Description::MAX_DEVICES] =
    [const { Mutex::new(Held { a_thread: FIRST, place: 0 }) }; Description::MAX_DEVICES];

/// Makes room for a kernel with `bytes` of local memory a thread on CUDA ordinal `ordinal`.
pub(crate) fn hold(ordinal: usize, bytes: u32) -> Result<(), OutOfMemory> {
    let a_thread = u64::from(bytes).next_multiple_of(UNIT);
    if a_thread <= FIRST {
        return Ok(());
    }
    let device =
        device::machine().and_then(|machine| machine.device(ordinal)).ok_or(OutOfMemory)?;
    let mut held = HELD[ordinal].lock().unwrap_or_else(PoisonError::into_inner);
    if a_thread <= held.a_thread {
        return Ok(());
    }
    activity::estimate(BASIS);
    let threads = u64::from(device.threads_per_multiprocessor.unsigned_abs())
        * u64::from(device.multiprocessors.unsigned_abs());
    memory::free(held.place as *mut c_void);
    (held.a_thread, held.place) = (FIRST, 0);
    held.place = memory::allocate_on(ordinal, (a_thread - FIRST) * threads)? as usize;
    held.a_thread = a_thread;
    Ok(())
}

/// What the report says of it.
const BASIS: &str = "local memory of kernels that spill registers or have a stack above 1 KiB a \
                     thread: taken to be held for every thread that the device runs at once";
