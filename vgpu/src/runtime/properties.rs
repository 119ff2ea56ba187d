//! `cudaGetDeviceProperties`: a struct whose layout is that of CUDA 13.

use std::ffi::c_int;

use super::device::{
    MAX_BLOCK, MAX_GRID, REGISTERS_PER_BLOCK, SHARED_PER_BLOCK, checked, reserved_shared,
};
use super::status::{Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};
use vramfit_vgpu_schema::Device;

/// `cudaDeviceProp` of CUDA 13 (driver_types.h). Names are those of the header in snake case.
#[repr(C)]
pub(super) struct Properties {
    pub(super) name: [u8; 256],
    pub(super) uuid: [u8; 16],
    pub(super) luid: [u8; 8],
    pub(super) luid_device_node_mask: u32,
    pub(super) total_global_mem: usize,
    pub(super) shared_mem_per_block: usize,
    pub(super) regs_per_block: c_int,
    pub(super) warp_size: c_int,
    pub(super) mem_pitch: usize,
    pub(super) max_threads_per_block: c_int,
    pub(super) max_threads_dim: [c_int; 3],
    pub(super) max_grid_size: [c_int; 3],
    pub(super) total_const_mem: usize,
    pub(super) major: c_int,
    pub(super) minor: c_int,
    pub(super) texture_alignment: usize,
    pub(super) texture_pitch_alignment: usize,
    pub(super) multi_processor_count: c_int,
    pub(super) integrated: c_int,
    pub(super) can_map_host_memory: c_int,
    /// From `maxTexture1D` to `maxSurfaceCubemapLayered`: no program here uses textures.
    pub(super) textures_and_surfaces: [c_int; 39],
    pub(super) surface_alignment: usize,
    pub(super) concurrent_kernels: c_int,
    pub(super) ecc_enabled: c_int,
    pub(super) pci_bus_id: c_int,
    pub(super) pci_device_id: c_int,
    pub(super) pci_domain_id: c_int,
    pub(super) tcc_driver: c_int,
    pub(super) async_engine_count: c_int,
    pub(super) unified_addressing: c_int,
    pub(super) memory_bus_width: c_int,
    pub(super) l2_cache_size: c_int,
    pub(super) persisting_l2_cache_max_size: c_int,
    pub(super) max_threads_per_multi_processor: c_int,
    pub(super) stream_priorities_supported: c_int,
    pub(super) global_l1_cache_supported: c_int,
    pub(super) local_l1_cache_supported: c_int,
    pub(super) shared_mem_per_multiprocessor: usize,
    pub(super) regs_per_multiprocessor: c_int,
    pub(super) managed_memory: c_int,
    pub(super) is_multi_gpu_board: c_int,
    pub(super) multi_gpu_board_group_id: c_int,
    pub(super) host_native_atomic_supported: c_int,
    pub(super) pageable_memory_access: c_int,
    pub(super) concurrent_managed_access: c_int,
    pub(super) compute_preemption_supported: c_int,
    pub(super) can_use_host_pointer_for_registered_mem: c_int,
    pub(super) cooperative_launch: c_int,
    pub(super) shared_mem_per_block_optin: usize,
    pub(super) pageable_memory_access_uses_host_page_tables: c_int,
    pub(super) direct_managed_mem_access_from_host: c_int,
    pub(super) max_blocks_per_multi_processor: c_int,
    pub(super) access_policy_max_window_size: c_int,
    pub(super) reserved_shared_mem_per_block: usize,
    pub(super) host_register_supported: c_int,
    /// From `sparseCudaArraySupported` to `ipcEventSupported`, none of which is.
    pub(super) other_support: [c_int; 10],
    pub(super) cluster_launch: c_int,
    /// From `unifiedFunctionPointers` to `hostNumaId`.
    pub(super) numa: [c_int; 5],
    pub(super) gpu_pci_device_id: u32,
    pub(super) gpu_pci_subsystem_id: u32,
    pub(super) host_numa_multinode_ipc_supported: c_int,
    pub(super) reserved: [c_int; 56],
}

/// What a program is told of a device.
pub(super) fn properties(ordinal: usize, device: &Device) -> Properties {
    let mut name = [0; 256];
    let length = device.name.len().min(name.len() - 1);
    name[..length].copy_from_slice(&device.name.as_bytes()[..length]);
    Properties {
        name,
        uuid: uuid_bytes(&device.uuid),
        luid: [0; 8],
        luid_device_node_mask: 0,
        total_global_mem: device.usable_memory_bytes as usize,
        shared_mem_per_block: SHARED_PER_BLOCK as usize,
        regs_per_block: REGISTERS_PER_BLOCK,
        warp_size: 32,
        mem_pitch: i32::MAX as usize,
        max_threads_per_block: MAX_BLOCK[0],
        max_threads_dim: MAX_BLOCK,
        max_grid_size: MAX_GRID,
        total_const_mem: 64 << 10,
        major: device.compute_capability.0,
        minor: device.compute_capability.1,
        texture_alignment: 512,
        texture_pitch_alignment: 32,
        multi_processor_count: device.multiprocessors,
        integrated: 0,
        can_map_host_memory: 1,
        textures_and_surfaces: [0; 39],
        surface_alignment: 512,
        concurrent_kernels: 1,
        ecc_enabled: 0,
        pci_bus_id: super::device::pci_bus(ordinal),
        pci_device_id: 0,
        pci_domain_id: 0,
        tcc_driver: 0,
        async_engine_count: 2,
        unified_addressing: 1,
        memory_bus_width: device.memory_bus_bits,
        l2_cache_size: device.l2_cache_bytes,
        persisting_l2_cache_max_size: 0,
        max_threads_per_multi_processor: device.threads_per_multiprocessor,
        stream_priorities_supported: 1,
        global_l1_cache_supported: 1,
        local_l1_cache_supported: 1,
        shared_mem_per_multiprocessor: device.shared_memory_per_multiprocessor as usize,
        regs_per_multiprocessor: device.registers_per_multiprocessor,
        managed_memory: 1,
        is_multi_gpu_board: 0,
        multi_gpu_board_group_id: 0,
        host_native_atomic_supported: 0,
        pageable_memory_access: 0,
        concurrent_managed_access: 1,
        compute_preemption_supported: 1,
        can_use_host_pointer_for_registered_mem: 1,
        cooperative_launch: 1,
        shared_mem_per_block_optin: device.shared_memory_per_block_optin as usize,
        pageable_memory_access_uses_host_page_tables: 0,
        direct_managed_mem_access_from_host: 0,
        max_blocks_per_multi_processor: device.blocks_per_multiprocessor,
        access_policy_max_window_size: 0,
        reserved_shared_mem_per_block: reserved_shared(device) as usize,
        host_register_supported: 1,
        other_support: [0; 10],
        cluster_launch: c_int::from(device.compute_capability.0 >= 9),
        numa: [0; 5],
        gpu_pci_device_id: device.pci_device_id >> 16,
        gpu_pci_subsystem_id: 0,
        host_numa_multinode_ipc_supported: 0,
        reserved: [0; 56],
    }
}

/// The 16 bytes of `GPU-` and a UUID; missing digits are 0.
pub(crate) fn uuid_bytes(text: &str) -> [u8; 16] {
    let digits: Vec<u8> = text
        .trim_start_matches("GPU-")
        .chars()
        .filter_map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair.get(1).unwrap_or(&0);
    }
    bytes
}

entry_points! {
    on_panic = UNKNOWN;

    /// All properties of a device, in the layout of CUDA 13.
    fn cudaGetDeviceProperties(answer: Out<Properties>, ordinal: c_int) -> Status {
        status(checked(ordinal).map(|(ordinal, device)| answer.set(properties(ordinal, device))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_layout_is_that_of_cuda_13() {
        // By `offsetof` and `sizeof` on driver_types.h of CUDA 13.0, x86-64.
        assert_eq!(size_of::<Properties>(), 1008);
        assert_eq!(offset_of!(Properties, total_global_mem), 288);
        assert_eq!(offset_of!(Properties, major), 360);
        assert_eq!(offset_of!(Properties, multi_processor_count), 384);
        assert_eq!(offset_of!(Properties, surface_alignment), 552);
        assert_eq!(offset_of!(Properties, l2_cache_size), 596);
        assert_eq!(offset_of!(Properties, shared_mem_per_block_optin), 672);
        assert_eq!(offset_of!(Properties, cluster_launch), 748);
        assert_eq!(offset_of!(Properties, gpu_pci_device_id), 772);
    }

    #[test]
    fn a_uuid_is_read_digit_by_digit() {
        let bytes = uuid_bytes("GPU-00010203-0405-0607-0809-0a0b0c0d0eff");
        assert_eq!(bytes[..4], [0, 1, 2, 3]);
        assert_eq!(bytes[15], 0xff);
    }
}
