//! `cudaGetDeviceProperties_v2`: the name under which programs built for CUDA 12 ask, and the layout
//! they expect. CUDA 13 dropped fields from the middle and took the plain name back.

use std::ffi::c_int;

use vramfit_vgpu_schema::Device;

use super::device::checked;
use super::properties::{self, Properties};
use super::status::{Status, UNKNOWN, status};
use crate::entry::{Out, entry_points};

/// `cudaDeviceProp` of CUDA 12 (driver_types.h). Names are those of the header in snake case.
#[repr(C)]
struct PropertiesOf12 {
    name: [u8; 256],
    uuid: [u8; 16],
    luid: [u8; 8],
    luid_device_node_mask: u32,
    total_global_mem: usize,
    shared_mem_per_block: usize,
    regs_per_block: c_int,
    warp_size: c_int,
    mem_pitch: usize,
    max_threads_per_block: c_int,
    max_threads_dim: [c_int; 3],
    max_grid_size: [c_int; 3],
    clock_rate: c_int,
    total_const_mem: usize,
    major: c_int,
    minor: c_int,
    texture_alignment: usize,
    texture_pitch_alignment: usize,
    device_overlap: c_int,
    multi_processor_count: c_int,
    kernel_exec_timeout_enabled: c_int,
    integrated: c_int,
    can_map_host_memory: c_int,
    compute_mode: c_int,
    /// See [`Properties`].
    textures_and_surfaces: [c_int; 39],
    surface_alignment: usize,
    concurrent_kernels: c_int,
    ecc_enabled: c_int,
    pci_bus_id: c_int,
    pci_device_id: c_int,
    pci_domain_id: c_int,
    tcc_driver: c_int,
    async_engine_count: c_int,
    unified_addressing: c_int,
    memory_clock_rate: c_int,
    memory_bus_width: c_int,
    l2_cache_size: c_int,
    persisting_l2_cache_max_size: c_int,
    max_threads_per_multi_processor: c_int,
    stream_priorities_supported: c_int,
    global_l1_cache_supported: c_int,
    local_l1_cache_supported: c_int,
    shared_mem_per_multiprocessor: usize,
    regs_per_multiprocessor: c_int,
    managed_memory: c_int,
    is_multi_gpu_board: c_int,
    multi_gpu_board_group_id: c_int,
    host_native_atomic_supported: c_int,
    single_to_double_precision_perf_ratio: c_int,
    pageable_memory_access: c_int,
    concurrent_managed_access: c_int,
    compute_preemption_supported: c_int,
    can_use_host_pointer_for_registered_mem: c_int,
    cooperative_launch: c_int,
    cooperative_multi_device_launch: c_int,
    shared_mem_per_block_optin: usize,
    pageable_memory_access_uses_host_page_tables: c_int,
    direct_managed_mem_access_from_host: c_int,
    max_blocks_per_multi_processor: c_int,
    access_policy_max_window_size: c_int,
    reserved_shared_mem_per_block: usize,
    host_register_supported: c_int,
    /// See [`Properties`].
    other_support: [c_int; 10],
    cluster_launch: c_int,
    unified_function_pointers: c_int,
    reserved: [c_int; 63],
}

/// How many times more single than double precision operations a multiprocessor does: 2 on the
/// data-centre chips (compute capability x.0), 64 on the consumer chips since 8.6, 32 before
/// (CUDA programming guide, arithmetic instructions).
fn single_to_double(device: &Device) -> c_int {
    match device.compute_capability {
        (6..=10, 0) => 2,
        (major, minor) if (major, minor) < (8, 0) => 32,
        _ => 64,
    }
}

fn of_12(shared: Properties, device: &Device) -> PropertiesOf12 {
    PropertiesOf12 {
        name: shared.name,
        uuid: shared.uuid,
        luid: shared.luid,
        luid_device_node_mask: shared.luid_device_node_mask,
        total_global_mem: shared.total_global_mem,
        shared_mem_per_block: shared.shared_mem_per_block,
        regs_per_block: shared.regs_per_block,
        warp_size: shared.warp_size,
        mem_pitch: shared.mem_pitch,
        max_threads_per_block: shared.max_threads_per_block,
        max_threads_dim: shared.max_threads_dim,
        max_grid_size: shared.max_grid_size,
        clock_rate: device.clock_khz,
        total_const_mem: shared.total_const_mem,
        major: shared.major,
        minor: shared.minor,
        texture_alignment: shared.texture_alignment,
        texture_pitch_alignment: shared.texture_pitch_alignment,
        device_overlap: 1,
        multi_processor_count: shared.multi_processor_count,
        kernel_exec_timeout_enabled: 0,
        integrated: shared.integrated,
        can_map_host_memory: shared.can_map_host_memory,
        compute_mode: 0,
        textures_and_surfaces: shared.textures_and_surfaces,
        surface_alignment: shared.surface_alignment,
        concurrent_kernels: shared.concurrent_kernels,
        ecc_enabled: shared.ecc_enabled,
        pci_bus_id: shared.pci_bus_id,
        pci_device_id: shared.pci_device_id,
        pci_domain_id: shared.pci_domain_id,
        tcc_driver: shared.tcc_driver,
        async_engine_count: shared.async_engine_count,
        unified_addressing: shared.unified_addressing,
        memory_clock_rate: device.memory_clock_khz,
        memory_bus_width: shared.memory_bus_width,
        l2_cache_size: shared.l2_cache_size,
        persisting_l2_cache_max_size: shared.persisting_l2_cache_max_size,
        max_threads_per_multi_processor: shared.max_threads_per_multi_processor,
        stream_priorities_supported: shared.stream_priorities_supported,
        global_l1_cache_supported: shared.global_l1_cache_supported,
        local_l1_cache_supported: shared.local_l1_cache_supported,
        shared_mem_per_multiprocessor: shared.shared_mem_per_multiprocessor,
        regs_per_multiprocessor: shared.regs_per_multiprocessor,
        managed_memory: shared.managed_memory,
        is_multi_gpu_board: shared.is_multi_gpu_board,
        multi_gpu_board_group_id: shared.multi_gpu_board_group_id,
        host_native_atomic_supported: shared.host_native_atomic_supported,
        single_to_double_precision_perf_ratio: single_to_double(device),
        pageable_memory_access: shared.pageable_memory_access,
        concurrent_managed_access: shared.concurrent_managed_access,
        compute_preemption_supported: shared.compute_preemption_supported,
        can_use_host_pointer_for_registered_mem: shared.can_use_host_pointer_for_registered_mem,
        cooperative_launch: shared.cooperative_launch,
        cooperative_multi_device_launch: 1,
        shared_mem_per_block_optin: shared.shared_mem_per_block_optin,
        pageable_memory_access_uses_host_page_tables: shared
            .pageable_memory_access_uses_host_page_tables,
        direct_managed_mem_access_from_host: shared.direct_managed_mem_access_from_host,
        max_blocks_per_multi_processor: shared.max_blocks_per_multi_processor,
        access_policy_max_window_size: shared.access_policy_max_window_size,
        reserved_shared_mem_per_block: shared.reserved_shared_mem_per_block,
        host_register_supported: shared.host_register_supported,
        other_support: shared.other_support,
        cluster_launch: shared.cluster_launch,
        unified_function_pointers: 0,
        reserved: [0; 63],
    }
}

entry_points! {
    on_panic = UNKNOWN;

    /// All properties of a device, in the layout of CUDA 12.
    fn cudaGetDeviceProperties_v2(answer: Out<PropertiesOf12>, ordinal: c_int) -> Status {
        status(checked(ordinal).map(|(ordinal, device)| {
            answer.set(of_12(properties::properties(ordinal, device), device));
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_layout_is_that_of_cuda_12() {
        // By `offsetof` and `sizeof` on driver_types.h of CUDA 12.4 and 12.8, x86-64.
        assert_eq!(size_of::<PropertiesOf12>(), 1032);
        assert_eq!(offset_of!(PropertiesOf12, clock_rate), 348);
        assert_eq!(offset_of!(PropertiesOf12, major), 360);
        assert_eq!(offset_of!(PropertiesOf12, multi_processor_count), 388);
        assert_eq!(offset_of!(PropertiesOf12, textures_and_surfaces), 408);
        assert_eq!(offset_of!(PropertiesOf12, surface_alignment), 568);
        assert_eq!(offset_of!(PropertiesOf12, memory_clock_rate), 608);
        assert_eq!(offset_of!(PropertiesOf12, l2_cache_size), 616);
        assert_eq!(offset_of!(PropertiesOf12, shared_mem_per_multiprocessor), 640);
        assert_eq!(offset_of!(PropertiesOf12, single_to_double_precision_perf_ratio), 668);
        assert_eq!(offset_of!(PropertiesOf12, shared_mem_per_block_optin), 696);
        assert_eq!(offset_of!(PropertiesOf12, reserved_shared_mem_per_block), 720);
        assert_eq!(offset_of!(PropertiesOf12, cluster_launch), 772);
        assert_eq!(offset_of!(PropertiesOf12, reserved), 780);
    }
}
