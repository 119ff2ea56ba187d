//! Kernels of modules: what each needs, what a device makes of that, and how one is launched.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use vramfit_vgpu_schema::Device;

use super::device::code;
use super::image::Found;
use crate::cubin::Resources;
use crate::entry::{In, Out, entry_points};
use crate::handles::Handles;
use crate::kernel::{self, Kernel};
use crate::launch::{self, Arguments};
use crate::occupancy::{Block, most_threads, resident_blocks};
use crate::runtime::status::{
    INVALID_RESOURCE_HANDLE, INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES, NOT_SUPPORTED, Status, UNKNOWN,
};
use crate::runtime::{MAX_BLOCK, MAX_GRID, SHARED_PER_BLOCK, checked, ready};
use crate::{activity, device, local_memory};

/// A kernel of a module; a `CUkernel` is a `CUfunction` here.
struct Function {
    kernel: &'static Kernel,
    needs: Resources,
    architecture: Option<i32>,
    /// Most dynamic shared memory of a launch in bytes, as the program sets it.
    dynamic_shared: AtomicI32,
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
        kernel: kernel::of_module(name),
        needs,
        architecture: found.architecture,
        dynamic_shared: AtomicI32::new(
            SHARED_PER_BLOCK.saturating_sub_unsigned(needs.shared_bytes),
        ),
        settable,
    })
}

fn function(handle: *mut c_void) -> Result<Arc<Function>, Status> {
    FUNCTIONS.get(handle).ok_or(INVALID_RESOURCE_HANDLE)
}

/// `CUlaunchConfig`, and the arguments of the calls that have none.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
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
    fn cluster(&self) -> u32 {
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
        || shared_bytes as c_int > dynamic_shared
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

fn run(handle: *mut c_void, configuration: Configuration) -> Status {
    code(ready().and_then(|_| function(handle)).and_then(|function| {
        check(&function, &configuration)?;
        local_memory::hold(device::current(), function.needs.local_bytes)?;
        // Arguments of such kernels have no known types, and none of them is a fill.
        launch::launch_kernel(function.kernel, std::ptr::null(), configuration.stream)
    }))
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

fn occupancy(blocks: Out<c_int>, handle: *mut c_void, threads: c_int, shared: usize) -> Status {
    code(function(handle).and_then(|function| {
        let (_, device) = checked(device::current() as c_int)?;
        blocks.set(resident_blocks(device, block(&function, threads, shared)));
        Ok(())
    }))
}

fn block(function: &Function, threads: c_int, dynamic_shared: usize) -> Block {
    let shared_bytes = dynamic_shared.saturating_add(function.needs.shared_bytes as usize);
    Block { threads, shared_bytes, registers: Some(function.needs.registers) }
}

/// What the report says of a number of clusters.
const CLUSTERS: &str = "clusters on the device at once: taken to fill all multiprocessors; the real \
                        number depends on how these are grouped";

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
        _arguments: Arguments,
        _extra: *const *const c_void,
    ) -> Status {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        run(handle, Configuration::plain(grid, block, shared_bytes, stream))
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
        _arguments: Arguments,
    ) -> Status {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        run(handle, Configuration::plain(grid, block, shared_bytes, stream))
    }

    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx(
        configuration: In<Configuration>,
        handle: *mut c_void,
        _arguments: Arguments,
        _extra: *const *const c_void,
    ) -> Status {
        configuration.get().map_or(INVALID_VALUE, |configuration| run(handle, configuration))
    }

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

    /// Resident blocks of a kernel.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        handle: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
    ) -> Status {
        occupancy(blocks, handle, threads, shared_bytes)
    }

    /// Resident blocks of a kernel.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>,
        handle: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
        _flags: c_uint,
    ) -> Status {
        occupancy(blocks, handle, threads, shared_bytes)
    }

    /// Clusters that are on the device at once. An estimate.
    fn cuOccupancyMaxActiveClusters(
        clusters: Out<c_int>,
        handle: *mut c_void,
        configuration: In<Configuration>,
    ) -> Status {
        code(function(handle).and_then(|function| {
            let (_, device) = checked(device::current() as c_int)?;
            if device.compute_capability.0 < 9 {
                return Err(NOT_SUPPORTED);
            }
            let configuration = configuration.get().ok_or(INVALID_VALUE)?;
            let threads: c_uint = configuration.block.iter().product();
            let block = block(&function, threads as c_int, configuration.shared_bytes as usize);
            let blocks = resident_blocks(device, block) * device.multiprocessors;
            activity::estimate(CLUSTERS);
            clusters.set(blocks.checked_div(configuration.cluster() as c_int).unwrap_or(0));
            Ok(())
        }))
    }
}
