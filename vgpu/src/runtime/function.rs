//! Attributes of kernels and how many blocks of one a multiprocessor holds.

use std::ffi::{c_int, c_uint, c_void};

use super::device::{SHARED_PER_BLOCK, checked, ready};
use super::status::{
    INVALID_DEVICE_FUNCTION, INVALID_VALUE, NO_KERNEL_IMAGE, Status, UNKNOWN, status,
};
use crate::entry::{Out, entry_points};
use crate::occupancy::{Block, resident_blocks};
use crate::{device, kernel};

/// The part of `cudaFuncAttributes` that CUDA 12 and 13 share.
#[repr(C)]
struct FunctionAttributes {
    shared_size_bytes: usize,
    const_size_bytes: usize,
    local_size_bytes: usize,
    max_threads_per_block: c_int,
    num_regs: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode_ca: c_int,
    max_dynamic_shared_size_bytes: c_int,
    preferred_shmem_carveout: c_int,
    cluster_dim_must_be_set: c_int,
    required_cluster: [c_int; 3],
    cluster_scheduling_policy_preference: c_int,
}

/// Registers and static shared memory of a kernel stand in its machine code, which is not read: these
/// are what a typical elementwise kernel of PyTorch has. They decide no allocation of PyTorch's own;
/// `binary_version` does (CUB picks its algorithms, and so its buffers, by it) and is the true one.
pub(crate) const TYPICAL_REGISTERS: c_int = 32;

fn attributes(stub: *const c_void) -> Result<FunctionAttributes, Status> {
    let ordinal = device::current();
    let device = ready()?.device(ordinal).ok_or(INVALID_VALUE)?;
    let kernel = kernel::find(stub).ok_or(INVALID_DEVICE_FUNCTION)?;
    let code = kernel.code(ordinal, device).ok_or(NO_KERNEL_IMAGE)?;
    Ok(FunctionAttributes {
        shared_size_bytes: 0,
        const_size_bytes: 0,
        local_size_bytes: 0,
        max_threads_per_block: 1024,
        num_regs: TYPICAL_REGISTERS,
        ptx_version: code.ptx,
        binary_version: code.binary,
        cache_mode_ca: 0,
        max_dynamic_shared_size_bytes: SHARED_PER_BLOCK,
        preferred_shmem_carveout: -1,
        cluster_dim_must_be_set: 0,
        required_cluster: [0; 3],
        cluster_scheduling_policy_preference: 0,
    })
}

fn occupancy(blocks: Out<c_int>, threads: c_int, shared_bytes: usize) -> Status {
    status(checked(device::current() as c_int).map(|(_, device)| {
        blocks.set(resident_blocks(device, Block { threads, shared_bytes, registers: None }));
    }))
}

entry_points! {
    on_panic = UNKNOWN;

    /// Attributes of the kernel behind a host stub.
    fn cudaFuncGetAttributes(answer: Out<FunctionAttributes>, stub: *const c_void) -> Status {
        status(attributes(stub).map(|attributes| answer.set(attributes)))
    }

    /// Asks for more dynamic shared memory or another carve-out: nothing runs, so it is granted.
    fn cudaFuncSetAttribute(_stub: *const c_void, _which: c_int, _value: c_int) -> Status {
        status(ready().map(|_| ()))
    }

    /// Prefers one cache configuration.
    fn cudaFuncSetCacheConfig(_stub: *const c_void, _configuration: c_int) -> Status {
        status(ready().map(|_| ()))
    }

    /// Resident blocks of a kernel.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        _stub: *const c_void,
        threads: c_int,
        shared_bytes: usize,
    ) -> Status {
        occupancy(blocks, threads, shared_bytes)
    }

    /// Resident blocks of a kernel.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>,
        _stub: *const c_void,
        threads: c_int,
        shared_bytes: usize,
        _flags: c_uint,
    ) -> Status {
        occupancy(blocks, threads, shared_bytes)
    }
}
