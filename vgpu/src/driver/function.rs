//! Kernels of modules: what each needs, and their attributes.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use vramfit_vgpu_schema::Device;

use super::device::code;
use super::image::Found;
use crate::cubin::Resources;
use crate::device;
use crate::entry::{Out, entry_points};
use crate::handles::Handles;
use crate::kernel::{self, Kernel};
use crate::occupancy::most_threads;
use crate::runtime::status::{INVALID_RESOURCE_HANDLE, INVALID_VALUE, Status, UNKNOWN};
use crate::runtime::{SHARED_PER_BLOCK, checked};

/// A kernel of a module; a `CUkernel` is a `CUfunction` here.
pub(super) struct Function {
    /// What counts its launches.
    pub(super) kernel: &'static Kernel,
    /// What it is taken to need.
    pub(super) needs: Resources,
    architecture: Option<i32>,
    /// Most dynamic shared memory of a launch in bytes, as the program sets it.
    pub(super) dynamic_shared: AtomicI32,
    /// The other attributes that a program may set, by number less [`FIRST_SETTABLE`].
    settable: [AtomicI32; 7],
}

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, `_PREFERRED_SHARED_MEMORY_CARVEOUT`.
const DYNAMIC_SHARED: c_int = 8;
const FIRST_SETTABLE: c_int = 9;

static FUNCTIONS: Handles<Function> = Handles::new();

/// A handle to kernel `name`.
pub(super) fn publish(name: &str, found: &Found) -> *mut c_void {
    let needs = found.needs();
    let settable: [AtomicI32; 7] = Default::default();
    settable[0].store(-1, Ordering::Relaxed); // no preference
    FUNCTIONS.insert(Function {
        kernel: kernel::named(name),
        needs,
        architecture: found.architecture,
        dynamic_shared: AtomicI32::new(
            SHARED_PER_BLOCK.saturating_sub_unsigned(needs.shared_bytes),
        ),
        settable,
    })
}

/// Ends `handle`: its module is gone.
pub(super) fn withdraw(handle: *mut c_void) {
    FUNCTIONS.remove(handle);
}

/// The kernel behind `handle`.
pub(super) fn function(handle: *mut c_void) -> Result<Arc<Function>, Status> {
    FUNCTIONS.get(handle).ok_or(INVALID_RESOURCE_HANDLE)
}

/// `CUfunction_attribute`.
fn attribute(function: &Function, which: c_int, device: &Device) -> Result<c_int, Status> {
    let (major, minor) = device.compute_capability;
    let needs = &function.needs;
    Ok(match which {
        0 => most_threads(needs) as c_int,
        1 => needs.shared_bytes as c_int,
        2 => 0, // constants that the program declares
        3 => needs.local_bytes as c_int,
        4 => needs.registers as c_int,
        5 | 6 => function.architecture.unwrap_or(major * 10 + minor),
        7 => 0, // global loads are not cached in L1 by compiler option
        DYNAMIC_SHARED => function.dynamic_shared.load(Ordering::Relaxed),
        FIRST_SETTABLE..=15 => {
            function.settable[(which - FIRST_SETTABLE) as usize].load(Ordering::Relaxed)
        }
        _ => return Err(INVALID_VALUE),
    })
}

fn set_attribute(
    function: &Function,
    which: c_int,
    value: c_int,
    device: &Device,
) -> Result<(), Status> {
    match which {
        DYNAMIC_SHARED => {
            let room = device.shared_memory_per_block_optin - function.needs.shared_bytes as c_int;
            if !(0..=room).contains(&value) {
                return Err(INVALID_VALUE);
            }
            function.dynamic_shared.store(value, Ordering::Relaxed);
        }
        FIRST_SETTABLE..=15 => {
            function.settable[(which - FIRST_SETTABLE) as usize].store(value, Ordering::Relaxed);
        }
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}

entry_points! {
    on_panic = UNKNOWN;

    /// One attribute of a kernel.
    fn cuFuncGetAttribute(value: Out<c_int>, which: c_int, handle: *mut c_void) -> Status {
        code(function(handle).and_then(|function| {
            let (_, device) = checked(device::current() as c_int)?;
            value.set(attribute(&function, which, device)?);
            Ok(())
        }))
    }

    /// Sets one attribute of a kernel.
    fn cuFuncSetAttribute(handle: *mut c_void, which: c_int, value: c_int) -> Status {
        code(function(handle).and_then(|function| {
            let (_, device) = checked(device::current() as c_int)?;
            set_attribute(&function, which, value, device)
        }))
    }

    /// Prefers one cache configuration.
    fn cuFuncSetCacheConfig(handle: *mut c_void, _configuration: c_int) -> Status {
        code(function(handle).map(|_| ()))
    }

    /// The kernel's handle in the current context.
    fn cuKernelGetFunction(answer: Out<*mut c_void>, handle: *mut c_void) -> Status {
        code(function(handle).map(|_| answer.set(handle)))
    }

    /// One attribute of a kernel on a device.
    fn cuKernelGetAttribute(
        value: Out<c_int>,
        which: c_int,
        handle: *mut c_void,
        ordinal: c_int,
    ) -> Status {
        code(function(handle).and_then(|function| {
            value.set(attribute(&function, which, checked(ordinal)?.1)?);
            Ok(())
        }))
    }

    /// Sets one attribute of a kernel on a device.
    fn cuKernelSetAttribute(
        which: c_int,
        value: c_int,
        handle: *mut c_void,
        ordinal: c_int,
    ) -> Status {
        code(function(handle)
            .and_then(|function| set_attribute(&function, which, value, checked(ordinal)?.1)))
    }

    /// Prefers one cache configuration.
    fn cuKernelSetCacheConfig(handle: *mut c_void, _configuration: c_int, ordinal: c_int) -> Status {
        code(function(handle).and(checked(ordinal)).map(|_| ()))
    }
}
