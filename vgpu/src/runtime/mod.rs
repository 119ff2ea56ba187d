//! The CUDA runtime (libcudart), one file a chapter of its manual.

mod capture;
mod device;
mod driver_entry;
mod event;
mod function;
mod graph;
mod host;
mod ipc;
mod limits;
pub(crate) mod managed;
mod memory;
pub(crate) mod pool;
pub(crate) mod properties;
mod properties_12;
mod registration;
pub(crate) mod status;
mod stream;
mod symbol;
mod version;

pub(crate) use capture::{begin, end, info, is_capturing};
pub(crate) use device::{
    MAX_BLOCK, MAX_GRID, REGISTERS_PER_BLOCK, SHARED_PER_BLOCK, attribute, checked, pci_address,
    ready, reserved_shared, synchronize,
};
pub(crate) use driver_entry::driver_function;
pub(crate) use function::TYPICAL_REGISTERS;
pub(crate) use host::{allocate_host, free_host, host_range};
pub(crate) use limits::{get_limit, set_limit};
pub(crate) use memory::{copy_now, free_device, ordered, set_now};
pub(crate) use stream::{create_stream, destroy_stream, stream, synchronize_stream};
pub(crate) use version::runtime_version;

/// CUDA's `dim3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

impl From<Dim3> for [u32; 3] {
    fn from(it: Dim3) -> Self {
        [it.x, it.y, it.z]
    }
}
