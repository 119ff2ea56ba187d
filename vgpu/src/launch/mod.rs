//! Launching a kernel: it is counted, and nothing runs, with one exception ([`fill`]).

pub(crate) mod fill;

use std::ffi::c_void;

use crate::kernel::{self, Kernel};
use crate::{activity, device};

/// A kernel's arguments as the runtime gets them: one pointer an argument.
pub(crate) type Arguments = *const *const c_void;

/// Launches the kernel behind host stub `stub`; false if no such kernel is registered.
pub(crate) fn launch(stub: *const c_void, arguments: Arguments) -> bool {
    let Some(kernel) = kernel::find(stub) else { return false };
    launch_kernel(kernel, arguments);
    true
}

/// Launches `kernel`.
pub(crate) fn launch_kernel(kernel: &'static Kernel, arguments: Arguments) {
    // A context that no longer fits is told by the allocation that comes next; a launch cannot be.
    let _ = device::make_context(device::current());
    activity::launched_kernel(kernel);
    if let Some(element) = kernel.fill {
        fill::carry_out(element, arguments);
    }
}
