//! The device code of a library: which architectures it was built for.
//!
//! `nvcc` wraps the code in a container whose layout is the same since CUDA 7 (fatbinary_section.h
//! gives the wrapper; the container is a header and a row of entries, each with its own header, whose
//! last field is the size of the code once it is unpacked).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, PoisonError};

/// `__fatBinC_Wrapper_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    container: *const Header,
    file: *const c_void,
}

const WRAPPER_MAGIC: u32 = 0x466243b1;
const CONTAINER_MAGIC: u32 = 0xba55ed50;
/// How a container, or its wrapper, begins.
pub(crate) const MAGICS: [u32; 2] = [WRAPPER_MAGIC, CONTAINER_MAGIC];

/// Kinds of entry.
const PTX: u16 = 1;
const MACHINE_CODE: u16 = 2;

#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    magic: u32,
    version: u16,
    header_bytes: u16,
    entries_bytes: u64,
}

/// The start of an entry.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    kind: u16,
    version: u16,
    header_bytes: u32,
    code_bytes: u64,
    compressed_bytes: u32,
    options: u32,
    minor: u16,
    major: u16,
    architecture: u32,
    name_offset: u32,
    name_bytes: u32,
    flags: u64,
    reserved: u64,
    unpacked_bytes: u64,
}

/// Handles are addresses of wrappers; a copy of each keeps them apart from other handles.
static WRAPPERS: LazyLock<Mutex<BTreeSet<usize>>> = LazyLock::new(Default::default);

/// Notes a library's device code; the handle that stands for it.
pub(crate) fn register(wrapper: *const c_void) -> *mut c_void {
    let mut wrappers = WRAPPERS.lock().unwrap_or_else(PoisonError::into_inner);
    wrappers.insert(wrapper as usize);
    wrapper.cast_mut()
}

/// Forgets a library's device code.
pub(crate) fn unregister(handle: *mut c_void) {
    let mut wrappers = WRAPPERS.lock().unwrap_or_else(PoisonError::into_inner);
    wrappers.remove(&(handle as usize));
}

/// The code that a device runs, as `cudaFuncAttributes` states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// Architecture the intermediate code is for, e.g. 86.
    pub(crate) ptx: i32,
    /// Architecture of the machine code: the device's own where the driver compiles the former.
    pub(crate) binary: i32,
    /// Size of it in bytes, unpacked: what a device holds of it at most.
    pub(crate) bytes: u64,
}

/// The code of library `handle` that a device of compute capability `capability` runs: the newest
/// machine code of its own generation that is not newer than itself, else the newest intermediate code
/// that is not (CUDA programming guide, "Binary compatibility" and "PTX compatibility"). None if there
/// is neither.
pub(crate) fn code_for(handle: usize, capability: (i32, i32)) -> Option<Code> {
    let wrappers = WRAPPERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !wrappers.contains(&handle) {
        return None;
    }
    // SAFETY: the handle is the address of a wrapper that its library registered and has not taken
    // back; the lock keeps it from doing so now.
    let built = unsafe { contents(handle as *const Wrapper) };
    let device = capability.0 * 10 + capability.1;
    let newest = |kind, generation: Option<i32>| {
        built
            .iter()
            .filter(|((built_kind, architecture), _)| {
                *built_kind == kind
                    && *architecture <= device
                    && generation.is_none_or(|generation| architecture / 10 == generation)
            })
            .map(|((_, architecture), bytes)| (*architecture, *bytes))
            .max()
    };
    newest(MACHINE_CODE, Some(capability.0))
        .map(|(built_for, bytes)| Code { ptx: built_for, binary: built_for, bytes })
        .or_else(|| newest(PTX, None).map(|(ptx, bytes)| Code { ptx, binary: device, bytes }))
}

/// Kind, architecture and unpacked size of each entry in the container of `wrapper`.
///
/// # Safety
/// `wrapper` points at a registered wrapper.
unsafe fn contents(wrapper: *const Wrapper) -> BTreeMap<(u16, i32), u64> {
    let mut found = BTreeMap::new();
    // SAFETY: by this function's contract; the container follows as the compiler wrote it, and its
    // own sizes bound the walk.
    unsafe {
        let Wrapper { magic, container, .. } = wrapper.read_unaligned();
        if magic != WRAPPER_MAGIC || container.is_null() {
            return found;
        }
        let header = container.read_unaligned();
        if header.magic != CONTAINER_MAGIC {
            return found;
        }
        let mut entry = container.byte_add(header.header_bytes.into()).cast::<Entry>();
        let end = entry.byte_add(header.entries_bytes as usize);
        while entry.byte_add(size_of::<Entry>()) <= end {
            let Entry { kind, header_bytes, code_bytes, architecture, unpacked_bytes, .. } =
                entry.read_unaligned();
            // What is not packed does not state it.
            let bytes = unpacked_bytes.max(code_bytes);
            found.insert((kind, architecture as i32), bytes);
            let step = u64::from(header_bytes) + code_bytes;
            if step == 0 {
                break;
            }
            entry = entry.byte_add(step as usize);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Container {
        header: Header,
        entries: [Entry; 4],
    }

    #[test]
    fn a_device_runs_machine_code_of_its_generation_else_intermediate_code() {
        let entry = |kind, architecture| Entry {
            kind,
            version: 0x101,
            header_bytes: size_of::<Entry>() as u32,
            code_bytes: 0,
            compressed_bytes: 0,
            options: 0,
            minor: 0,
            major: 0,
            architecture,
            name_offset: 0,
            name_bytes: 0,
            flags: 0,
            reserved: 0,
            unpacked_bytes: u64::from(architecture) * 1000,
        };
        let container = Container {
            header: Header {
                magic: CONTAINER_MAGIC,
                version: 1,
                header_bytes: size_of::<Header>() as u16,
                entries_bytes: 4 * size_of::<Entry>() as u64,
            },
            entries: [
                entry(MACHINE_CODE, 75),
                entry(MACHINE_CODE, 80),
                entry(MACHINE_CODE, 90),
                entry(PTX, 90),
            ],
        };
        let wrapper = Wrapper {
            magic: WRAPPER_MAGIC,
            version: 1,
            container: &raw const container.header,
            file: std::ptr::null(),
        };
        let handle = register((&raw const wrapper).cast()) as usize;
        let code = |ptx, binary| Some(Code { ptx, binary, bytes: ptx as u64 * 1000 });
        assert_eq!(code_for(handle, (8, 6)), code(80, 80));
        assert_eq!(code_for(handle, (9, 0)), code(90, 90));
        assert_eq!(code_for(handle, (12, 0)), code(90, 120), "compiled by the driver");
        assert_eq!(code_for(handle, (7, 0)), None);
        unregister(handle as *mut c_void);
        assert_eq!(code_for(handle, (8, 6)), None);
    }
}
