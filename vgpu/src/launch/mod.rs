//! Launching a kernel: it is counted, and nothing runs, with one exception ([`fill`]).

pub(crate) mod fill;

use std::ffi::c_void;

use vramfit_vgpu_cost::Work;

use self::fill::Fill;
use crate::graph::{Kind, capture};
use crate::kernel::{self, Kernel};
use crate::runtime::status::{INVALID_DEVICE_FUNCTION, NO_DEVICE, NO_KERNEL_IMAGE, Status};
use crate::{activity, device};

/// A kernel's arguments as the runtime gets them: one pointer an argument.
pub(crate) type Arguments = *const *const c_void;

/// How a kernel is launched.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    /// Blocks.
    pub(crate) grid: [u32; 3],
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// May be null.
    pub(crate) arguments: Arguments,
    pub(crate) stream: *mut c_void,
}

/// Launches the kernel behind host stub `stub` on the calling thread's device.
pub(crate) fn launch(stub: *const c_void, launch: Launch) -> Result<(), Status> {
    let kernel = kernel::find(stub).ok_or(INVALID_DEVICE_FUNCTION)?;
    let ordinal = device::current();
    let device = device::machine().and_then(|machine| machine.device(ordinal)).ok_or(NO_DEVICE)?;
    kernel.code(ordinal, device).ok_or(NO_KERNEL_IMAGE)?;
    launch_kernel(kernel, launch)
}

/// Launches `kernel`.
pub(crate) fn launch_kernel(kernel: &'static Kernel, launch: Launch) -> Result<(), Status> {
    // A context that no longer fits is told by the allocation that comes next; a launch cannot be.
    let _ = device::make_context(device::current());
    let fill = kernel.fill.and_then(|element| Fill::of(element, launch.arguments));
    let work = work(kernel, &launch);
    capture::submit(launch.stream, Kind::Kernel, &kernel.name, work, move || {
        activity::launched_kernel(kernel);
        if let Some(fill) = &fill {
            fill.carry_out();
        }
    })
}

/// What a launch of `kernel` asks of the device, as far as that is known.
fn work(_kernel: &Kernel, _launch: &Launch) -> Work {
    Work::Unknown
}
