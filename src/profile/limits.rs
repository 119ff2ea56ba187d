//! What follows from the compute capability alone.

use super::gpu::ComputeCapability;

/// What a multiprocessor can hold; a property of the compute capability alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Resident threads.
    pub(crate) threads: i32,
    /// Resident blocks.
    pub(crate) blocks: i32,
    /// Shared memory in KiB.
    pub(crate) shared_kib: i32,
    /// Shared memory of one block that asks for more than 48 KiB, in KiB.
    pub(crate) block_shared_kib: i32,
    /// Lanes that add and multiply fp32 numbers ("CUDA cores").
    pub(crate) cores: u32,
}

/// 32-bit registers of one multiprocessor, the same on all that PyTorch 2 runs on.
pub(crate) const REGISTERS: i32 = 65_536;

/// From the table "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++
/// programming guide. A capability that is not listed gets the row of the next older one.
const TABLE: [((u32, u32), Limits); 14] = [
    ((5, 0), row(2048, 32, 64, 48, 128)),
    ((5, 2), row(2048, 32, 96, 48, 128)),
    ((6, 0), row(2048, 32, 64, 48, 64)),
    ((6, 1), row(2048, 32, 96, 48, 128)),
    ((7, 0), row(2048, 32, 96, 96, 64)),
    ((7, 5), row(1024, 16, 64, 64, 64)),
    ((8, 0), row(2048, 32, 164, 163, 64)),
    ((8, 6), row(1536, 16, 100, 99, 128)),
    ((8, 7), row(1536, 16, 164, 163, 128)),
    ((8, 9), row(1536, 24, 100, 99, 128)),
    ((9, 0), row(2048, 32, 228, 227, 128)),
    ((10, 0), row(2048, 32, 228, 227, 128)),
    ((11, 0), row(1536, 24, 228, 227, 128)),
    ((12, 0), row(1536, 24, 100, 99, 128)),
];

const fn row(
    threads: i32,
    blocks: i32,
    shared_kib: i32,
    block_shared_kib: i32,
    cores: u32,
) -> Limits {
    Limits { threads, blocks, shared_kib, block_shared_kib, cores }
}

impl Limits {
    pub(crate) fn of(capability: ComputeCapability) -> Self {
        let asked = (capability.major, capability.minor);
        let known = TABLE.iter().rev().find(|(listed, _)| *listed <= asked);
        known.unwrap_or(&TABLE[0]).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_between_two_rows_gets_the_older_one() {
        let of = |major, minor| Limits::of(ComputeCapability { major, minor });
        assert_eq!(of(8, 6).shared_kib, 100);
        assert_eq!(of(12, 1), of(12, 0));
        assert_eq!(of(10, 3), of(10, 0));
        assert_eq!(of(3, 5), of(5, 0));
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(TABLE.is_sorted_by_key(|(capability, _)| *capability));
    }
}
