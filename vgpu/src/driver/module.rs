//! Modules compiled at run time (NVRTC, Triton) and the launch of their kernels.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::device::code;
use crate::device;
use crate::entry::{In, Out, entry_points};
use crate::handles::Handles;
use crate::kernel::{self, Kernel};
use crate::launch::{self, Arguments};
use crate::runtime::status::{INVALID_RESOURCE_HANDLE, Status, UNKNOWN};
use crate::runtime::{checked, ready, resident_blocks};

/// A loaded module: only that it is there matters.
struct Module;

static MODULES: Handles<Module> = Handles::new();
static FUNCTIONS: Handles<&'static Kernel> = Handles::new();

fn load(handle: Out<*mut c_void>) -> Status {
    code(ready().map(|_| handle.set(MODULES.insert(Module))))
}

fn function(handle: *mut c_void) -> Result<&'static Kernel, Status> {
    FUNCTIONS.get(handle).map(|kernel| *kernel).ok_or(INVALID_RESOURCE_HANDLE)
}

fn run(handle: *mut c_void, stream: *mut c_void) -> Status {
    // Arguments of such kernels have no known types, and none of them is a fill.
    let kernel = function(handle);
    code(kernel.and_then(|kernel| launch::launch_kernel(kernel, std::ptr::null(), stream)))
}

/// `CUfunction_attribute`: threads a block, registers, PTX and binary version.
fn function_attribute(which: c_int) -> Result<c_int, Status> {
    let (_, device) = checked(device::current() as c_int)?;
    let (major, minor) = device.compute_capability;
    Ok(match which {
        0 => 1024,
        4 => 32,
        5 | 6 => major * 10 + minor, // compiled for this very device
        _ => 0,
    })
}

entry_points! {
    on_panic = UNKNOWN;

    /// Loads a module.
    fn cuModuleLoadData(handle: Out<*mut c_void>, _image: *const c_void) -> Status {
        load(handle)
    }

    /// Loads a module.
    fn cuModuleLoadDataEx(
        handle: Out<*mut c_void>,
        _image: *const c_void,
        _option_count: c_uint,
        _options: *const c_int,
        _values: *const *const c_void,
    ) -> Status {
        load(handle)
    }

    /// Loads a module from a file.
    fn cuModuleLoad(handle: Out<*mut c_void>, _path: In<c_char>) -> Status {
        load(handle)
    }

    /// Ends a module.
    fn cuModuleUnload(handle: *mut c_void) -> Status {
        code(if MODULES.remove(handle) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) })
    }

    /// A kernel of a module by name.
    fn cuModuleGetFunction(
        handle: Out<*mut c_void>,
        module: *mut c_void,
        name: In<c_char>,
    ) -> Status {
        code(MODULES.get(module).ok_or(INVALID_RESOURCE_HANDLE).map(|_| {
            handle.set(FUNCTIONS.insert(kernel::of_module(name.text())));
        }))
    }

    /// Launches a kernel.
    fn cuLaunchKernel(
        handle: *mut c_void,
        _grid_x: c_uint,
        _grid_y: c_uint,
        _grid_z: c_uint,
        _block_x: c_uint,
        _block_y: c_uint,
        _block_z: c_uint,
        _shared_bytes: c_uint,
        stream: *mut c_void,
        _arguments: Arguments,
        _extra: *const *const c_void,
    ) -> Status {
        run(handle, stream)
    }

    /// Launches a kernel whose blocks wait for each other.
    fn cuLaunchCooperativeKernel(
        handle: *mut c_void,
        _grid_x: c_uint,
        _grid_y: c_uint,
        _grid_z: c_uint,
        _block_x: c_uint,
        _block_y: c_uint,
        _block_z: c_uint,
        _shared_bytes: c_uint,
        stream: *mut c_void,
        _arguments: Arguments,
    ) -> Status {
        run(handle, stream)
    }

    /// One attribute of a kernel.
    fn cuFuncGetAttribute(value: Out<c_int>, which: c_int, handle: *mut c_void) -> Status {
        code(function(handle).and_then(|_| {
            value.set(function_attribute(which)?);
            Ok(())
        }))
    }

    /// Asks for more dynamic shared memory and the like; nothing runs, so it is granted.
    fn cuFuncSetAttribute(handle: *mut c_void, _which: c_int, _value: c_int) -> Status {
        code(function(handle).map(|_| ()))
    }

    /// Prefers one cache configuration.
    fn cuFuncSetCacheConfig(handle: *mut c_void, _configuration: c_int) -> Status {
        code(function(handle).map(|_| ()))
    }

    /// Resident blocks of a kernel.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        handle: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
    ) -> Status {
        code(function(handle).and(checked(device::current() as c_int)).map(|(_, device)| {
            blocks.set(resident_blocks(device, threads, shared_bytes));
        }))
    }
}
