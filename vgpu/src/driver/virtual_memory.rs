//! Virtual memory management: memory and addresses apart.

use std::ffi::{c_int, c_ulonglong, c_void};

use super::device::code;
use crate::activity;
use crate::address_space::GRANULE;
use crate::device;
use crate::entry::{In, Out, entry_points};
use crate::memory::virtual_memory::{self, Failure};
use crate::runtime::status::{INVALID_VALUE, MEMORY_ALLOCATION, NOT_SUPPORTED, Status, UNKNOWN};
use crate::runtime::{checked, ready};

/// `CUmemAllocationProp`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Properties {
    allocation: c_int,
    handle_types: c_int,
    location: Location,
    windows: *mut c_void,
    flags: [u8; 8],
}

const _: () = assert!(size_of::<Properties>() == 32);

/// `CUmemLocation`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`.
const PINNED: c_int = 1;
const ON_DEVICE: c_int = 1;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`, the only kind of handle that can be shared here.
const FILE_DESCRIPTOR: c_int = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_AND_WRITE: c_ulonglong = 3;

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Invalid => INVALID_VALUE,
            Failure::OutOfMemory => MEMORY_ALLOCATION,
        }
    }
}

/// The CUDA ordinal that memory is asked of.
fn device_of(properties: In<Properties>) -> Result<usize, Status> {
    let properties = properties.get().ok_or(INVALID_VALUE)?;
    if properties.allocation != PINNED {
        return Err(INVALID_VALUE);
    }
    if properties.location.kind != ON_DEVICE {
        activity::not_implemented("cuMemCreate for host memory");
        return Err(NOT_SUPPORTED);
    }
    // PyTorch asks for handles that cross machines first and does without: no card here has them.
    if properties.handle_types & !FILE_DESCRIPTOR != 0 {
        return Err(NOT_SUPPORTED);
    }
    let (ordinal, _) = checked(properties.location.id)?;
    Ok(ordinal)
}

entry_points! {
    on_panic = UNKNOWN;

    /// Unit of memory that can be created.
    fn cuMemGetAllocationGranularity(
        bytes: Out<usize>,
        properties: In<Properties>,
        _option: c_int,
    ) -> Status {
        code(ready().and_then(|_| {
            device_of(properties)?;
            bytes.set(GRANULE as usize);
            Ok(())
        }))
    }

    /// Reserves addresses; where, is not for the caller to say.
    fn cuMemAddressReserve(
        address: Out<u64>,
        bytes: usize,
        alignment: usize,
        _wish: u64,
        _flags: c_ulonglong,
    ) -> Status {
        code(ready().and_then(|_| {
            let ordinal = device::current();
            address.set(virtual_memory::reserve(ordinal, bytes as u64, alignment as u64)?);
            Ok(())
        }))
    }

    /// Gives addresses back.
    fn cuMemAddressFree(address: u64, bytes: usize) -> Status {
        code(ready().and_then(|_| Ok(virtual_memory::unreserve(address, bytes as u64)?)))
    }

    /// Creates memory.
    fn cuMemCreate(
        handle: Out<u64>,
        bytes: usize,
        properties: In<Properties>,
        _flags: c_ulonglong,
    ) -> Status {
        code(ready().and_then(|_| {
            handle.set(virtual_memory::create(device_of(properties)?, bytes as u64)?);
            Ok(())
        }))
    }

    /// Lets go of memory; it is freed once it is mapped nowhere.
    fn cuMemRelease(handle: u64) -> Status {
        code(ready().and_then(|_| Ok(virtual_memory::release(handle)?)))
    }

    /// Maps memory at an address. Parts of it cannot be mapped, as the manual says.
    fn cuMemMap(
        address: u64,
        bytes: usize,
        offset: usize,
        handle: u64,
        _flags: c_ulonglong,
    ) -> Status {
        code(ready().and_then(|_| {
            if offset != 0 {
                return Err(INVALID_VALUE);
            }
            Ok(virtual_memory::map(address, bytes as u64, handle)?)
        }))
    }

    /// Undoes mappings.
    fn cuMemUnmap(address: u64, bytes: usize) -> Status {
        code(ready().and_then(|_| Ok(virtual_memory::unmap(address, bytes as u64)?)))
    }

    /// Lets devices use what is mapped. Here all can.
    fn cuMemSetAccess(
        address: u64,
        bytes: usize,
        _descriptions: *const c_void,
        _count: usize,
    ) -> Status {
        let mapped = virtual_memory::is_mapped(address, bytes as u64);
        code(ready().and(if mapped { Ok(()) } else { Err(INVALID_VALUE) }))
    }

    /// How a device may use what is mapped.
    fn cuMemGetAccess(flags: Out<c_ulonglong>, _location: *const c_void, address: u64) -> Status {
        let mapped = virtual_memory::is_mapped(address, 1);
        flags.set(if mapped { READ_AND_WRITE } else { 0 });
        code(ready().and(if mapped { Ok(()) } else { Err(INVALID_VALUE) }))
    }

    /// One more handle to what is mapped at an address.
    fn cuMemRetainAllocationHandle(handle: Out<u64>, address: u64) -> Status {
        code(ready().and_then(|_| {
            handle.set(virtual_memory::retain(address)?);
            Ok(())
        }))
    }

    /// How memory was asked for.
    fn cuMemGetAllocationPropertiesFromHandle(answer: Out<Properties>, handle: u64) -> Status {
        code(ready().and_then(|_| {
            let memory = virtual_memory::physical(handle)?;
            answer.set(Properties {
                allocation: PINNED,
                handle_types: FILE_DESCRIPTOR,
                location: Location { kind: ON_DEVICE, id: memory.ordinal as c_int },
                windows: std::ptr::null_mut(),
                flags: [0; 8],
            });
            Ok(())
        }))
    }

    /// A file descriptor by which another process can import memory.
    fn cuMemExportToShareableHandle(
        descriptor: Out<c_int>,
        handle: u64,
        kind: c_int,
        _flags: c_ulonglong,
    ) -> Status {
        code(ready().and_then(|_| {
            if kind != FILE_DESCRIPTOR {
                return Err(NOT_SUPPORTED);
            }
            descriptor.set(virtual_memory::export(handle)?);
            Ok(())
        }))
    }

    /// Another process's memory by a file descriptor, which is passed where a pointer would be.
    fn cuMemImportFromShareableHandle(
        handle: Out<u64>,
        descriptor: usize,
        kind: c_int,
    ) -> Status {
        code(ready().and_then(|_| {
            if kind != FILE_DESCRIPTOR {
                return Err(NOT_SUPPORTED);
            }
            let descriptor = c_int::try_from(descriptor).map_err(|_| INVALID_VALUE)?;
            handle.set(virtual_memory::import(descriptor)?);
            Ok(())
        }))
    }
}
