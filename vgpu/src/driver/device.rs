//! Initialisation, versions, devices, error texts, entry points by name.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use crate::entry::{In, Out, entry_points};
use crate::runtime::properties::uuid_bytes;
use crate::runtime::status::{
    INVALID_DEVICE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, SYMBOL_NOT_FOUND, Status, UNKNOWN, words,
};
use crate::runtime::{attribute, checked, driver_function, pci_address, ready};
use crate::{activity, device, memory, own_library};

/// The driver keeps no last error.
pub(super) fn code(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(SUCCESS)
}

fn text_of(status: Status, text: Out<*const c_char>, meaning: bool) -> Status {
    match words(status) {
        Some((_, name, words)) => {
            text.set(if meaning { words } else { name }.as_ptr());
            SUCCESS
        }
        None => {
            text.set(std::ptr::null());
            INVALID_VALUE
        }
    }
}

/// NVIDIA's compilers and cuDNN, which ask for private tables, themselves or through cuBLASLt, and do
/// without for what they are asked here.
const DO_WITHOUT: [&str; 3] = ["/libnvrtc", "/libnvJitLink", "/libcudnn"];

entry_points! {
    on_panic = UNKNOWN;

    /// Starts the driver.
    fn cuInit(_flags: c_uint) -> Status {
        code(ready().map(|_| ()))
    }

    /// CUDA version that the driver supports; asking starts nothing.
    fn cuDriverGetVersion(version: Out<c_int>) -> Status {
        version.set(device::machine().map_or(0, |machine| machine.description.cuda_version));
        SUCCESS
    }

    /// Number of visible devices.
    fn cuDeviceGetCount(count: Out<c_int>) -> Status {
        code(ready().map(|machine| count.set(machine.visible().len() as c_int)))
    }

    /// A device by ordinal: the same number here.
    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|_| device.set(ordinal)))
    }

    /// Product name.
    fn cuDeviceGetName(text: Out<u8>, capacity: c_int, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|(_, device)| {
            text.set_text(&device.name, usize::try_from(capacity).unwrap_or_default());
        }))
    }

    /// UUID.
    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|(_, device)| uuid.set(uuid_bytes(&device.uuid))))
    }

    /// UUID.
    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|(_, device)| uuid.set(uuid_bytes(&device.uuid))))
    }

    /// Total memory, CUDA's.
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|(_, device)| bytes.set(device.usable_memory_bytes as usize)))
    }

    /// One attribute.
    fn cuDeviceGetAttribute(value: Out<c_int>, which: c_int, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|(ordinal, device)| {
            value.set(attribute(ordinal, device, which));
        }))
    }

    /// Compute capability.
    fn cuDeviceComputeCapability(
        major: Out<c_int>,
        minor: Out<c_int>,
        ordinal: c_int,
    ) -> Status {
        code(checked(ordinal).map(|(_, device)| {
            major.set(device.compute_capability.0);
            minor.set(device.compute_capability.1);
        }))
    }

    /// PCI address.
    fn cuDeviceGetPCIBusId(text: Out<u8>, capacity: c_int, ordinal: c_int) -> Status {
        code(checked(ordinal).map(|(ordinal, _)| {
            text.set_text(&pci_address(ordinal), usize::try_from(capacity).unwrap_or_default());
        }))
    }

    /// Free and total memory.
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) -> Status {
        code(memory::info(device::current()).map_err(|_| INVALID_DEVICE).map(|info| {
            free.set(info.0 as usize);
            total.set(info.1 as usize);
        }))
    }

    /// Meaning of a status.
    fn cuGetErrorString(status: Status, text: Out<*const c_char>) -> Status {
        text_of(status, text, true)
    }

    /// Name of a status.
    fn cuGetErrorName(status: Status, text: Out<*const c_char>) -> Status {
        text_of(status, text, false)
    }

    /// A driver function by name.
    fn cuGetProcAddress_v2(
        name: In<c_char>,
        function: Out<*mut c_void>,
        _version: c_int,
        _flags: c_ulonglong,
        outcome: Out<c_int>,
    ) -> Status {
        let found = driver_function(name.text());
        function.set(found.unwrap_or(std::ptr::null_mut()));
        outcome.set(c_int::from(found.is_none()));
        if found.is_some() { SUCCESS } else { SYMBOL_NOT_FOUND }
    }

    /// NVIDIA's private tables are not implemented: they are not documented, and one of them makes sure
    /// that the driver is NVIDIA's. Who asks for them is the CUDA runtime that was linked into a
    /// library, out of reach of this one's; the library is named in the report.
    fn cuGetExportTable(table: Out<*const c_void>, _id: *const u8) -> Status {
        table.set(std::ptr::null());
        let callers = own_library::callers();
        let names: Vec<_> = callers.iter().map(|path| path.to_string_lossy()).collect();
        let is_known = |name: &str| DO_WITHOUT.iter().any(|known| name.contains(known));
        if !names.iter().any(|name| is_known(name)) {
            let name = names.first().map_or("a library", |name| name);
            activity::not_implemented(format!(
                "cuGetExportTable (NVIDIA's private tables, for the CUDA runtime that {name} brings \
                 along; a library that links libcudart.so would have been served)"
            ));
        }
        NOT_SUPPORTED
    }
}
