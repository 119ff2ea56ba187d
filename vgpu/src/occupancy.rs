//! How many threads and blocks of a kernel a device takes, as NVIDIA's own calculator has it
//! (`cuda_occupancy.h` of the toolkit).

use std::ffi::c_int;

use vramfit_vgpu_schema::Device;

use crate::cubin::Resources;
use crate::runtime::{MAX_BLOCK, REGISTERS_PER_BLOCK, reserved_shared};

/// Threads of a warp, parts of a multiprocessor (each with a quarter of its registers), and the units
/// in which a warp gets registers; the same since compute capability 5.0, except for 6.0.
const WARP: u32 = 32;
const PARTS: u32 = 4;
const REGISTER_UNIT: u32 = 256;

/// Registers and shared memory of a block, for [`resident_blocks`].
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) threads: c_int,
    /// Static and dynamic.
    pub(crate) shared_bytes: usize,
    /// Registers a thread; none where the kernel's machine code is not read.
    pub(crate) registers: Option<u32>,
}

/// Warps that `registers` registers hold, if each thread has `a_thread`.
fn warps_of(registers: u32, a_thread: u32) -> u32 {
    let warp = (a_thread * WARP).next_multiple_of(REGISTER_UNIT);
    (registers / PARTS).checked_div(warp).map_or(u32::MAX, |warps| warps.saturating_mul(PARTS))
}

/// The most threads a block of a kernel may have.
pub(crate) fn most_threads(resources: &Resources) -> u32 {
    let by_registers = warps_of(REGISTERS_PER_BLOCK as u32, resources.registers);
    let declared = resources.declared_threads.unwrap_or(u32::MAX);
    declared.min(by_registers.saturating_mul(WARP)).min(MAX_BLOCK[0] as u32)
}

/// Blocks that one multiprocessor holds at once.
pub(crate) fn resident_blocks(device: &Device, block: Block) -> c_int {
    let Block { threads, shared_bytes, registers } = block;
    let most_shared = device.shared_memory_per_block_optin.unsigned_abs() as usize;
    if !(1..=MAX_BLOCK[0]).contains(&threads) || shared_bytes > most_shared {
        return 0;
    }
    let warps = (threads as u32).div_ceil(WARP);
    let by_threads = device.threads_per_multiprocessor / (WARP * warps) as c_int;
    let taken = shared_bytes as u64 + reserved_shared(device) as u64;
    let by_shared = (device.shared_memory_per_multiprocessor as u64).checked_div(taken);
    let held = device.registers_per_multiprocessor.unsigned_abs();
    let by_registers = registers.map_or(u32::MAX, |a_thread| warps_of(held, a_thread) / warps);
    by_threads
        .min(device.blocks_per_multiprocessor)
        .min(by_shared.map_or(c_int::MAX, |blocks| blocks.min(1024) as c_int))
        .min(by_registers.min(1024) as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_limit_the_threads_of_a_block_by_whole_warps_of_each_part() {
        let threads = |registers| most_threads(&Resources { registers, ..Resources::default() });
        assert_eq!([threads(0), threads(64), threads(65)], [1024, 1024, 896]);
        assert_eq!([threads(96), threads(128), threads(255)], [640, 512, 256]);
        let bounded =
            Resources { registers: 32, declared_threads: Some(128), ..Default::default() };
        assert_eq!(most_threads(&bounded), 128);
    }
}
