//! The device as cuDNN is told about it, in place of a device.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use vramfit_vgpu_schema::{Description, Device};

use super::backend::{kind, value_type};
use super::real::{Descriptor, Real};
use super::status;
use crate::{activity, device};

/// `CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION`.
const JSON_REPRESENTATION: i32 = 2702;

/// What `CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION` must hold for `device`; cuDNN 9.8 to 9.19 refuse a
/// text that lacks one of these. Grid, block and warp limits are those of every CUDA device since
/// compute capability 3.0; each of them runs cooperative launches since 6.0 (CUDA programming guide).
fn json(device: &Device, ordinal: usize, cuda_version: i32) -> String {
    let (major, minor) = device.compute_capability;
    let shared = device.shared_memory_per_multiprocessor;
    json!({
        "deviceName": device.name,
        "cudaDeviceId": ordinal,
        "deviceVer": major * 100 + minor * 10,
        "driverVer": cuda_version,
        "totalGlobalMem": device.usable_memory_bytes,
        "maxGridSize": [i32::MAX, 65_535, 65_535],
        "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": device.registers_per_multiprocessor,
        "multiProcessorCount": device.multiprocessors,
        "warpSize": 32,
        "maxSharedMemoryPerBlock": 48 * 1024,
        "maxSharedMemoryPerBlockOptin": device.shared_memory_per_block_optin,
        "reservedSharedMemoryPerBlock": shared - device.shared_memory_per_block_optin,
        "maxRegistersPerSM": device.registers_per_multiprocessor,
        "maxSharedMemoryPerSM": shared,
        "maxCtasPerSM": device.blocks_per_multiprocessor,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": device.threads_per_multiprocessor,
        "pciDeviceId": device.pci_device_id >> 16,
        "isTccDriver": 0,
        "supportCoopLaunch": 1,
        "smClockRateKHz": device.clock_khz,
        "memClockRateKHz": device.memory_clock_khz,
        "l2CacheSize": device.l2_cache_bytes,
    })
    .to_string()
}

/// A finalized properties descriptor, or the status and text with which cuDNN refused it. An address,
/// so that it may lie in a static.
type Made = Result<usize, i32>;

static MADE: Mutex<[Option<Made>; Description::MAX_DEVICES]> =
    Mutex::new([None; Description::MAX_DEVICES]);

/// The properties of the calling thread's device; made once, never destroyed.
pub(super) fn of_current_device(real: &Real) -> Result<Descriptor, i32> {
    let ordinal = device::current();
    let machine = device::machine().ok_or(status::NOT_INITIALIZED)?;
    let device = machine.device(ordinal).ok_or(status::NOT_INITIALIZED)?;
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let slot = made.get_mut(ordinal).ok_or(status::NOT_INITIALIZED)?;
    let made = *slot.get_or_insert_with(|| {
        let text = json(device, ordinal, machine.description.cuda_version);
        make(real, &text)
    });
    made.map(|address| address as Descriptor)
}

fn make(real: &Real, text: &str) -> Made {
    let mut descriptor: Descriptor = std::ptr::null_mut();
    let mut status = (real.create)(kind::DEVICE_PROPERTIES, &raw mut descriptor);
    if status == status::SUCCESS {
        let bytes = text.as_ptr().cast::<c_void>();
        let length = text.len() as i64;
        status = (real.set)(descriptor, JSON_REPRESENTATION, value_type::CHAR, length, bytes);
    }
    if status == status::SUCCESS {
        status = (real.finalize)(descriptor);
    }
    if status == status::SUCCESS {
        return Ok(descriptor as usize);
    }
    activity::internal_error(format!("cuDNN refuses the device properties ({status}): {text}"));
    Err(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::described;

    #[test]
    fn the_properties_are_those_of_the_described_card() {
        let device: Device = described(
            r#"{"name":"a \"quoted\" card","uuid":"GPU-1","total_memory_bytes":9,
            "usable_memory_bytes":8,"held_memory_bytes":0,"context_bytes":0,
            "compute_capability":[12,0],"multiprocessors":46,"l2_cache_bytes":3,
            "shared_memory_per_multiprocessor":102400,"shared_memory_per_block_optin":101376,
            "threads_per_multiprocessor":1536,"blocks_per_multiprocessor":24,
            "registers_per_multiprocessor":65536,"clock_khz":4,"memory_clock_khz":5,
            "memory_bus_bits":128,"pci_device_id":765464798,"power_limit_milliwatts":1}"#,
        );
        let read: serde_json::Value = serde_json::from_str(&json(&device, 2, 13_000)).unwrap();
        assert_eq!(read["deviceName"], device.name);
        assert_eq!(read["deviceVer"], 1200);
        assert_eq!(read["reservedSharedMemoryPerBlock"], 1024);
        assert_eq!(read["pciDeviceId"], 0x2da0);
        assert_eq!(read["totalGlobalMem"], 8);
        assert_eq!(read["cudaDeviceId"], 2);
    }
}
