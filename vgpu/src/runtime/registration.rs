//! What the CUDA compiler makes each library call when it is loaded: its kernels and its device
//! variables. Also how kernels are launched by compiled code.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};

use super::status::{INVALID_VALUE, SUCCESS, Status, UNKNOWN, status};
use super::{Dim3, symbol};
use crate::entry::{In, Out, entry_points};
use crate::launch::{self, Arguments, Launch};
use crate::{fat_binary, kernel};

/// What `<<<grid, block, shared, stream>>>` was told, between push and pop.
#[derive(Clone, Copy, Default)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
}

thread_local! {
    // Nested launches do not occur: arguments are evaluated before the push.
    static CONFIGURATION: Cell<Configuration> = Cell::default();
}

fn launch(
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: Arguments,
    stream: *mut c_void,
) -> Status {
    let (grid, block) = (grid.into(), block.into());
    status(launch::launch(stub, Launch { grid, block, arguments, stream }))
}

/// `cudaLaunchConfig_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LaunchConfiguration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: *mut c_void,
    attributes: *const c_void,
    attribute_count: c_uint,
}

entry_points! {
    on_panic = std::ptr::null_mut();

    /// A library announces its device code; the handle names it in later calls.
    fn __cudaRegisterFatBinary(wrapper: *const c_void) -> *mut c_void {
        fat_binary::register(wrapper)
    }
}

entry_points! {
    on_panic = ();

    /// All kernels and variables of a library are registered.
    fn __cudaRegisterFatBinaryEnd(_binary: *mut c_void) -> () {}

    /// A library is being closed.
    fn __cudaUnregisterFatBinary(binary: *mut c_void) -> () {
        kernel::unregister(binary as usize);
        fat_binary::unregister(binary);
    }

    /// Host stub `stub` stands for kernel `name`.
    fn __cudaRegisterFunction(
        binary: *mut c_void,
        stub: *const c_void,
        _device_function: *const c_char,
        name: In<c_char>,
        _thread_limit: c_int,
        _thread_id: *const c_void,
        _block_id: *const c_void,
        _block_dimensions: *const c_void,
        _grid_dimensions: *const c_void,
        _warp_size: *const c_int,
    ) -> () {
        kernel::register(stub, name.as_ptr(), binary as usize);
    }

    /// Host variable `variable` stands for a device variable of `bytes` bytes.
    fn __cudaRegisterVar(
        _binary: *mut c_void,
        variable: *const c_void,
        _device_address: *const c_char,
        _name: *const c_char,
        _external: c_int,
        bytes: usize,
        _constant: c_int,
        _global: c_int,
    ) -> () {
        symbol::register(variable, bytes);
    }
}

entry_points! {
    on_panic = 0;

    /// A library's device code is made ready; there is nothing to load.
    fn __cudaInitModule(_binary: *mut c_void) -> c_char {
        0
    }

    /// Keeps a launch configuration until the stub asks for it.
    fn __cudaPushCallConfiguration(
        grid: Dim3,
        block: Dim3,
        shared_bytes: usize,
        stream: *mut c_void,
    ) -> c_uint {
        CONFIGURATION.set(Configuration { grid, block, shared_bytes, stream: stream as usize });
        0
    }
}

entry_points! {
    on_panic = UNKNOWN;

    /// Hands the launch configuration to the stub.
    fn __cudaPopCallConfiguration(
        grid: Out<Dim3>,
        block: Out<Dim3>,
        shared_bytes: Out<usize>,
        stream: Out<usize>,
    ) -> Status {
        let configuration = CONFIGURATION.get();
        grid.set(configuration.grid);
        block.set(configuration.block);
        shared_bytes.set(configuration.shared_bytes);
        stream.set(configuration.stream);
        SUCCESS
    }

    /// CUDA 13's handle of a kernel is its host stub here.
    fn __cudaGetKernel(kernel: Out<*const c_void>, stub: *const c_void) -> Status {
        kernel.set(stub);
        SUCCESS
    }

    /// Launches a kernel (CUDA 13's compiled code).
    fn __cudaLaunchKernel(
        kernel: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: Arguments,
        _shared_bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        launch(kernel, grid, block, arguments, stream)
    }

    /// Launches a kernel.
    fn cudaLaunchKernel(
        stub: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: Arguments,
        _shared_bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        launch(stub, grid, block, arguments, stream)
    }

    /// Launches a kernel whose blocks wait for each other.
    fn cudaLaunchCooperativeKernel(
        stub: *const c_void,
        grid: Dim3,
        block: Dim3,
        arguments: Arguments,
        _shared_bytes: usize,
        stream: *mut c_void,
    ) -> Status {
        launch(stub, grid, block, arguments, stream)
    }

    /// Launches a kernel with attributes.
    fn cudaLaunchKernelExC(
        configuration: In<LaunchConfiguration>,
        stub: *const c_void,
        arguments: Arguments,
    ) -> Status {
        let Some(configuration) = configuration.get() else {
            return status(Err(INVALID_VALUE));
        };
        let LaunchConfiguration { grid, block, stream, .. } = configuration;
        launch(stub, grid, block, arguments, stream)
    }
}
