//! Managed memory through the driver: the runtime's.

use std::ffi::{c_int, c_uint, c_void};

use super::device::code;
use crate::entry::{Out, entry_points};
use crate::runtime::managed::{advised, allocate};
use crate::runtime::status::{Status, UNKNOWN};

entry_points! {
    on_panic = UNKNOWN;

    /// Allocates managed memory.
    fn cuMemAllocManaged(pointer: Out<u64>, bytes: usize, _flags: c_uint) -> Status {
        code(allocate(bytes).map(|address| pointer.set(address as u64)))
    }

    /// Moves pages ahead of their use, as CUDA 12 calls it.
    fn cuMemPrefetchAsync(pointer: u64, _bytes: usize) -> Status {
        code(advised(pointer as *const c_void))
    }

    /// Moves pages ahead of their use.
    fn cuMemPrefetchAsync_v2(pointer: u64, _bytes: usize) -> Status {
        code(advised(pointer as *const c_void))
    }

    /// Advises on the use of pages, as CUDA 12 calls it.
    fn cuMemAdvise(pointer: u64, _bytes: usize, _advice: c_int) -> Status {
        code(advised(pointer as *const c_void))
    }

    /// Advises on the use of pages.
    fn cuMemAdvise_v2(pointer: u64, _bytes: usize, _advice: c_int) -> Status {
        code(advised(pointer as *const c_void))
    }
}
