//! PCI addresses of devices through NVML, and devices by address.

use std::ffi::{c_char, c_void};

use super::{handle_of, initialized, status, with_device};
use crate::entry::{In, Out, entry_points};

/// What `nvmlDeviceGetPciInfo` fills in; later versions of the call append to it.
#[derive(Clone, Copy)]
#[repr(C)]
struct PciInfo {
    legacy_address: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
}

/// `nvmlPciInfo_v2_t`.
#[repr(C)]
struct PciInfoV2 {
    first: PciInfo,
    subsystem_id: u32,
    reserved: [u32; 4],
}

/// `nvmlPciInfo_t` of the third version.
#[repr(C)]
struct PciInfoV3 {
    first: PciInfo,
    subsystem_id: u32,
    address: [u8; 32],
}

// A caller of an older version has room for that version alone.
const _: () = assert!(size_of::<PciInfo>() == 32);
const _: () = assert!(size_of::<PciInfoV2>() == 52);
const _: () = assert!(size_of::<PciInfoV3>() == 68);

/// Each device sits alone on a bus of its own in domain 0, the first on bus 1.
fn bus(index: usize) -> usize {
    index + 1
}

fn text_bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let length = text.len().min(N - 1);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

/// Index of the device at PCI address `text`, `domain:bus:device.function` or `bus:device.function`,
/// all in hexadecimal.
fn index_at(text: &str, devices: usize) -> Option<usize> {
    let mut fields = text.rsplit(':');
    let slot = fields.next()?;
    let slot = slot.split_once('.').map_or(slot, |(device, _)| device);
    let number = |field: &str| usize::from_str_radix(field, 16).ok();
    let bus_number = number(fields.next()?)?;
    let domain = fields.next().map_or(Some(0), number)?;
    let found = (0..devices).find(|index| bus(*index) == bus_number)?;
    (number(slot)? == 0 && domain == 0 && fields.next().is_none()).then_some(found)
}

fn pci_info(index: usize, device_id: u32) -> PciInfo {
    let bus = bus(index);
    let legacy_address = text_bytes(&format!("0000:{bus:02X}:00.0"));
    PciInfo { legacy_address, domain: 0, bus: bus as u32, device: 0, device_id }
}

fn by_pci_address(address: In<c_char>, handle: Out<*mut c_void>) -> i32 {
    initialized(|description| match index_at(address.text(), description.devices.len()) {
        Some(index) => {
            handle.set(handle_of(index));
            status::SUCCESS
        }
        None => status::NOT_FOUND,
    })
}

/// Answers with what `version` makes of a device's place and its common part.
fn pci<T>(handle: *mut c_void, info: Out<T>, version: impl FnOnce(usize, PciInfo) -> T) -> i32 {
    with_device(handle, |index, device| {
        info.set(version(index, pci_info(index, device.pci_device_id)));
        status::SUCCESS
    })
}

entry_points! { on_panic = status::UNKNOWN;
    fn nvmlDeviceGetHandleByPciBusId(address: In<c_char>, handle: Out<*mut c_void>) -> i32 {
        by_pci_address(address, handle)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(address: In<c_char>, handle: Out<*mut c_void>) -> i32 {
        by_pci_address(address, handle)
    }

    fn nvmlDeviceGetPciInfo(handle: *mut c_void, info: Out<PciInfo>) -> i32 {
        pci(handle, info, |_, first| first)
    }

    fn nvmlDeviceGetPciInfo_v2(handle: *mut c_void, info: Out<PciInfoV2>) -> i32 {
        pci(handle, info, |_, first| PciInfoV2 { first, subsystem_id: 0, reserved: [0; 4] })
    }

    fn nvmlDeviceGetPciInfo_v3(handle: *mut c_void, info: Out<PciInfoV3>) -> i32 {
        pci(handle, info, |index, first| {
            let address = text_bytes(&format!("00000000:{:02X}:00.0", bus(index)));
            PciInfoV3 { first, subsystem_id: 0, address }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_at_its_pci_address_in_every_usual_spelling() {
        for text in ["00000000:02:00.0", "0000:02:00.0", "02:00.0", "0000:02:00"] {
            assert_eq!(index_at(text, 2), Some(1), "{text}");
        }
        for text in ["", "02", "0000:03:00.0", "0001:02:00.0", "0000:02:01.0", "x:02:00.0"] {
            assert_eq!(index_at(text, 2), None, "{text}");
        }
    }
}
