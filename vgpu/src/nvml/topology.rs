//! How devices hang together, through NVML: over PCI Express only. NVLink, NVSwitch fabric and
//! partitions are not there, which is an answer of NVML's own, not a gap: these are asked by every
//! PyTorch program that frees memory across processes or lets segments grow.

use std::ffi::c_void;

use super::{status, with_device};
use crate::entry::{Out, entry_points};

/// `nvmlGpuFabricInfo_v2_t` (nvml.h), with which later versions begin. Zero in all but the first field
/// is: asked with success, no fabric (`NVML_GPU_FABRIC_STATE_NOT_SUPPORTED`).
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct FabricInfo {
    version: u32,
    cluster_uuid: [u8; 16],
    status: i32,
    clique: u32,
    state: u32,
    health: u32,
}

fn absent(handle: *mut c_void) -> i32 {
    with_device(handle, |_, _| status::NOT_SUPPORTED)
}

entry_points! { on_panic = status::UNKNOWN;
    fn nvmlDeviceGetNvLinkState(handle: *mut c_void, _link: u32, _active: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetNvLinkRemoteDeviceType(handle: *mut c_void, _link: u32, _type: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(handle: *mut c_void, _link: u32, _info: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetGpuFabricInfo(handle: *mut c_void, _info: *mut c_void) -> i32 {
        absent(handle)
    }

    /// A GPU that no NVSwitch connects answers too, with a state that says so.
    fn nvmlDeviceGetGpuFabricInfoV(handle: *mut c_void, info: *mut FabricInfo) -> i32 {
        if info.is_null() {
            return status::INVALID_ARGUMENT;
        }
        with_device(handle, |_, _| {
            // SAFETY: not null, and the interface asks for a structure that begins so in each version.
            let asked = unsafe { info.read_unaligned() };
            let answer = FabricInfo { version: asked.version, ..FabricInfo::default() };
            // SAFETY: as above.
            unsafe { info.write_unaligned(answer) };
            status::SUCCESS
        })
    }

    fn nvmlDeviceGetMigMode(handle: *mut c_void, _current: *mut c_void, _pending: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetTemperature(handle: *mut c_void, _sensor: u32, _degrees: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetPowerUsage(handle: *mut c_void, _milliwatts: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetTotalEnergyConsumption(handle: *mut c_void, _millijoules: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetFanSpeed(handle: *mut c_void, _percent: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetPerformanceState(handle: *mut c_void, _state: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetBAR1MemoryInfo(handle: *mut c_void, _memory: *mut c_void) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetSerial(handle: *mut c_void, _buffer: *mut c_void, _capacity: u32) -> i32 {
        absent(handle)
    }

    fn nvmlDeviceGetEccMode(handle: *mut c_void, _current: *mut c_void, _pending: *mut c_void) -> i32 {
        absent(handle)
    }

    /// `NVML_P2P_STATUS_OK` between two devices, 0: over PCI Express.
    fn nvmlDeviceGetP2PStatus(first: *mut c_void, second: *mut c_void, _index: i32, p2p: Out<i32>) -> i32 {
        with_device(first, |_, _| with_device(second, |_, _| {
            p2p.set(0);
            status::SUCCESS
        }))
    }

    /// `NVML_TOPOLOGY_HOSTBRIDGE`, 30: the devices share a host bridge.
    fn nvmlDeviceGetTopologyCommonAncestor(first: *mut c_void, second: *mut c_void, level: Out<i32>) -> i32 {
        with_device(first, |_, _| with_device(second, |_, _| {
            level.set(30);
            status::SUCCESS
        }))
    }
}
