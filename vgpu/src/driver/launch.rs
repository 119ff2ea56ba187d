//! Launches of kernels of modules.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

use super::device::code;
use super::function::{Function, function};
use crate::entry::{In, entry_points};
use crate::launch::{self, Arguments, Launch};
use crate::occupancy::most_threads;
use crate::runtime::status::{INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, Status, UNKNOWN};
use crate::runtime::{MAX_BLOCK, MAX_GRID, ready};
use crate::{device, local_memory};

/// `CUlaunchConfig`, and the arguments of the calls that have none.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Configuration {
    grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute`: which, then the value in 64 bytes that are aligned to 8.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LaunchAttribute {
    which: c_int,
    padding: [u8; 4],
    value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER: c_int = 4;

impl Configuration {
    fn plain(
        grid: [c_uint; 3],
        block: [c_uint; 3],
        shared_bytes: c_uint,
        stream: *mut c_void,
    ) -> Self {
        let attributes = std::ptr::null();
        Self { grid, block, shared_bytes, stream, attributes, attribute_count: 0 }
    }

    /// Blocks of a cluster; 1 without clusters.
    pub(super) fn cluster(&self) -> u32 {
        if self.attributes.is_null() {
            return 1;
        }
        (0..self.attribute_count as usize)
            // SAFETY: the caller passes as many attributes as it says.
            .map(|index| unsafe { self.attributes.add(index).read_unaligned() })
            .find(|attribute| attribute.which == CLUSTER)
            .map_or(1, |attribute| attribute.value[..3].iter().product())
    }
}

/// Whether a launch of this form is one that the driver takes.
fn check(function: &Function, configuration: &Configuration) -> Result<(), Status> {
    let within = |sizes: [c_uint; 3], most: [c_int; 3]| {
        sizes.iter().zip(most).all(|(size, most)| (1..=most as c_uint).contains(size))
    };
    let Configuration { grid, block, shared_bytes, .. } = *configuration;
    let dynamic_shared = function.dynamic_shared.load(Ordering::Relaxed);
    if !within(grid, MAX_GRID)
        || !within(block, MAX_BLOCK)
        || i64::from(shared_bytes) > i64::from(dynamic_shared)
    {
        return Err(INVALID_VALUE);
    }
    let threads: c_uint = block.iter().product();
    if function.needs.declared_threads.is_some_and(|declared| threads > declared) {
        return Err(INVALID_VALUE);
    }
    if threads > most_threads(&function.needs) {
        return Err(LAUNCH_OUT_OF_RESOURCES);
    }
    Ok(())
}

fn run(handle: *mut c_void, configuration: Configuration, arguments: Arguments) -> Status {
    code(ready().and_then(|_| function(handle)).and_then(|function| {
        check(&function, &configuration)?;
        local_memory::hold(device::current(), function.needs.local_bytes)?;
        let Configuration { grid, block, stream, .. } = configuration;
        launch::launch_kernel(function.kernel, Launch { grid, block, arguments, stream })
    }))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Launches a kernel.
    fn cuLaunchKernel(
        handle: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: *mut c_void,
        arguments: Arguments,
        _extra: *const *const c_void,
    ) -> Status {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        run(handle, Configuration::plain(grid, block, shared_bytes, stream), arguments)
    }

    /// Launches a kernel whose blocks wait for each other.
    fn cuLaunchCooperativeKernel(
        handle: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: *mut c_void,
        arguments: Arguments,
    ) -> Status {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        run(handle, Configuration::plain(grid, block, shared_bytes, stream), arguments)
    }

    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx(
        configuration: In<Configuration>,
        handle: *mut c_void,
        arguments: Arguments,
        _extra: *const *const c_void,
    ) -> Status {
        configuration.get().map_or(INVALID_VALUE, |it| run(handle, it, arguments))
    }
}
