//! NVML, the view from outside: devices in the description's order whatever this process may see of
//! them, memory as all processes together use it.

mod device;
mod memory;
mod pci;
mod system;
mod topology;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use vramfit_vgpu_schema::{Description, Device};

use crate::device::machine;

/// Values of `nvmlReturn_t`.
mod status {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const UNINITIALIZED: i32 = 1;
    pub(super) const INVALID_ARGUMENT: i32 = 2;
    pub(super) const NOT_SUPPORTED: i32 = 3;
    pub(super) const NOT_FOUND: i32 = 6;
    pub(super) const INSUFFICIENT_SIZE: i32 = 7;
    pub(super) const DRIVER_NOT_LOADED: i32 = 9;
    pub(super) const ARGUMENT_VERSION_MISMATCH: i32 = 25;
    pub(super) const UNKNOWN: i32 = 999;
}

/// How often NVML was initialized and not yet shut down again.
static USERS: AtomicU32 = AtomicU32::new(0);

/// Answers with `body`, between `nvmlInit` and `nvmlShutdown`.
fn initialized(body: impl FnOnce(&'static Description) -> i32) -> i32 {
    match machine() {
        Some(machine) if USERS.load(Ordering::Relaxed) > 0 => body(&machine.description),
        _ => status::UNINITIALIZED,
    }
}

/// A device's handle: its place in the description, away from null.
fn handle_of(index: usize) -> *mut c_void {
    (index + 1) as *mut c_void
}

/// Answers with `body` for the device behind `handle` and its index.
fn with_device(handle: *mut c_void, body: impl FnOnce(usize, &'static Device) -> i32) -> i32 {
    initialized(|description| {
        let index = (handle as usize).wrapping_sub(1);
        match description.devices.get(index) {
            Some(device) => body(index, device),
            None => status::INVALID_ARGUMENT,
        }
    })
}

/// Writes `text` into the caller's buffer.
fn write_text(buffer: crate::entry::Out<u8>, capacity: u32, text: &str) -> i32 {
    if buffer.is_null() {
        return status::INVALID_ARGUMENT;
    }
    if text.len() >= capacity as usize {
        return status::INSUFFICIENT_SIZE;
    }
    buffer.set_text(text, capacity as usize);
    status::SUCCESS
}
