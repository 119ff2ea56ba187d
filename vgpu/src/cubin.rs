//! Machine code as `ptxas` and NVRTC write it (a cubin, which is an ELF file): the kernels in it and
//! what each of them needs.
//!
//! Where things stand was found with NVIDIA's `cuobjdump -elf`, whose own figures a test compares:
//! section `.nv.info` holds attributes of all kernels, `.nv.info.NAME` those of one, `.nv.shared.NAME`
//! is as long as its static shared memory, and `.text.NAME` is its code. An attribute is a byte that
//! tells its form, a byte that names it, and two bytes that hold a value or the length of what follows.

use std::collections::BTreeMap;

/// What one kernel needs, as the compiler states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Registers a thread.
    pub(crate) registers: u32,
    /// Local memory a thread, in bytes: spilled registers and the stack.
    pub(crate) local_bytes: u32,
    /// Static shared memory a block, in bytes.
    pub(crate) shared_bytes: u32,
    /// Threads a block by `__launch_bounds__` and the like; none if the source does not say.
    pub(crate) declared_threads: Option<u32>,
}

/// The kernels of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cubin {
    /// Architecture it was compiled for, e.g. 86.
    pub(crate) architecture: i32,
    /// Whether it uses features of that architecture alone (`sm_90a`). Not every compiler marks that.
    pub(crate) exact: bool,
    /// By name.
    pub(crate) kernels: BTreeMap<String, Resources>,
}

pub(crate) const MAGIC: [u8; 4] = *b"\x7fELF";
/// Bytes of the file's header, and of one section's.
const FILE_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;
/// `SHT_SYMTAB`; `SHT_NOBITS`, a section without bytes in the file.
const SYMBOLS: u32 = 2;
const WITHOUT_BYTES: u32 = 8;

/// What CUDA keeps of each block's shared memory is part of that section since architecture 90.
const KEPT_SHARED: u64 = 1 << 10;

/// Form of an attribute whose two bytes are the length of its value; the others have it right there.
const SIZED: u8 = 4;
/// `EIATTR_MAX_THREADS`, `_REQNTID`, `_FRAME_SIZE`, `_REGCOUNT`.
const MAX_THREADS: u8 = 0x05;
const REQUIRED_THREADS: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const REGISTER_COUNT: u8 = 0x2f;

struct Section<'a> {
    name: &'a str,
    kind: u32,
    bytes: u64,
    content: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Zero-terminated text at `at`.
fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == 0)?]).ok()
}

/// Length of the file whose first bytes are `header`, of which there must be [`FILE_HEADER`]: its tables
/// come last.
fn length(header: &[u8]) -> Option<usize> {
    let table = |offset, count, size: usize| {
        let start = usize::try_from(u64_at(header, offset)?).ok()?;
        start.checked_add(usize::from(u16_at(header, count)?) * size)
    };
    Some(table(0x28, 0x3c, SECTION_HEADER)?.max(table(0x20, 0x38, PROGRAM_HEADER)?))
}

/// The architecture that a file is for, and whether for it alone. The version of the ABI is in the file's
/// own mark: the eighth moved the architecture by a byte, and the mark to where that was. Both were found by
/// compiling for `sm_90`, `sm_90a`, `sm_100`, `sm_100a`, `sm_120` and `sm_120a` with `ptxas` 12.8 and 12.9;
/// that of CUDA 13.0 sets no mark.
fn target(abi: u8, flags: u32) -> (u32, bool) {
    if abi >= 8 {
        (flags >> 8 & 0xff, flags & 1 << 3 != 0)
    } else {
        (flags & 0xff, flags & 1 << 11 != 0)
    }
}

impl Cubin {
    /// Reads the file at `image`. None if it is no cubin.
    ///
    /// # Safety
    /// `image` points at a whole ELF file.
    pub(crate) unsafe fn at(image: *const u8) -> Option<Self> {
        // SAFETY: by the caller's promise; a file is at least as long as its header, and its header
        // tells where it ends.
        unsafe {
            let bytes = length(std::slice::from_raw_parts(image, FILE_HEADER))?;
            Self::read(std::slice::from_raw_parts(image, bytes))
        }
    }

    /// Reads `file`. None if it is no cubin.
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        if file.get(..4)? != MAGIC {
            return None;
        }
        let (architecture, exact) = target(*file.get(8)?, u32_at(file, 0x30)?);
        let sections = sections(file)?;
        let find = |wanted: &str| sections.iter().find(|section| section.name == wanted);
        let mut kernels: BTreeMap<String, Resources> = sections
            .iter()
            .filter_map(|section| section.name.strip_prefix(".text."))
            .map(|name| (name.to_owned(), Resources::default()))
            .collect();
        for (name, resources) in &mut kernels {
            if let Some(shared) = find(&format!(".nv.shared.{name}")) {
                let kept = if architecture >= 90 { KEPT_SHARED } else { 0 };
                resources.shared_bytes = u32::try_from(shared.bytes.saturating_sub(kept)).ok()?;
            }
            let own = find(&format!(".nv.info.{name}")).map_or(&[][..], |it| it.content);
            resources.declared_threads = attributes(own)
                .find(|(which, _)| [MAX_THREADS, REQUIRED_THREADS].contains(which))
                .and_then(|(_, value)| (0..3).map(|axis| u32_at(value, 4 * axis)).product());
        }
        let symbols = sections.iter().find(|section| section.kind == SYMBOLS)?.content;
        let names = find(".strtab")?.content;
        for (which, value) in attributes(find(".nv.info").map_or(&[][..], |it| it.content)) {
            let (Some(symbol), Some(number)) = (u32_at(value, 0), u32_at(value, 4)) else {
                continue;
            };
            let name = u32_at(symbols, symbol as usize * SYMBOL)
                .and_then(|name| text_at(names, name as usize));
            let Some(resources) = name.and_then(|name| kernels.get_mut(name)) else { continue };
            match which {
                REGISTER_COUNT => resources.registers = number,
                FRAME_SIZE => resources.local_bytes = number,
                _ => {}
            }
        }
        Some(Self { architecture: architecture as i32, exact, kernels })
    }

    /// Whether a device of compute capability `capability` runs this: machine code is for one
    /// generation, and for the architecture it was compiled for and later ones of it (CUDA programming
    /// guide, "Binary compatibility"), or for that architecture alone where it is marked so
    /// ("Architecture-specific features").
    pub(crate) fn runs_on(&self, capability: (i32, i32)) -> bool {
        let device = capability.0 * 10 + capability.1;
        if self.exact {
            return self.architecture == device;
        }
        self.architecture / 10 == capability.0 && self.architecture <= device
    }
}

fn sections(file: &[u8]) -> Option<Vec<Section<'_>>> {
    let table = usize::try_from(u64_at(file, 0x28)?).ok()?;
    let header = |index: u16| {
        let start = table.checked_add(usize::from(index) * SECTION_HEADER)?;
        file.get(start..start.checked_add(SECTION_HEADER)?)
    };
    let content = |header: &[u8]| {
        if u32_at(header, 4)? == WITHOUT_BYTES {
            return Some(&[][..]);
        }
        let start = usize::try_from(u64_at(header, 0x18)?).ok()?;
        file.get(start..start.checked_add(usize::try_from(u64_at(header, 0x20)?).ok()?)?)
    };
    let names = content(header(u16_at(file, 0x3e)?)?)?;
    (0..u16_at(file, 0x3c)?)
        .map(|index| {
            let header = header(index)?;
            Some(Section {
                name: text_at(names, u32_at(header, 0)? as usize)?,
                kind: u32_at(header, 4)?,
                bytes: u64_at(header, 0x20)?,
                content: content(header)?,
            })
        })
        .collect()
}

/// Names and values of a section's attributes.
fn attributes(mut section: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[form, which], rest) = section.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk::<2>()?;
        let bytes = if form == SIZED { usize::from(u16::from_le_bytes(*number)) } else { 0 };
        let (value, rest) = rest.split_at_checked(bytes)?;
        section = rest;
        Some((which, if form == SIZED { value } else { &number[..] }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cubin_is_refused_and_not_followed() {
        assert_eq!(Cubin::read(b""), None);
        assert_eq!(Cubin::read(b"\x7fELF"), None);
        let mut file = vec![0xff; FILE_HEADER];
        file[..4].copy_from_slice(&MAGIC);
        assert_eq!(Cubin::read(&file), None, "tables beyond the end");
        assert_eq!(length(&file), None);
    }

    #[test]
    fn attributes_end_with_their_section() {
        let section = [3, 0x1b, 0xff, 0, 4, 0x2f, 8, 0, 1, 0, 0, 0, 32, 0, 0, 0, 4, 0x11, 8, 0];
        let found: Vec<_> = attributes(&section).collect();
        let value = [1, 0, 0, 0, 32, 0, 0, 0];
        assert_eq!(found, [(0x1b, &[0xff, 0][..]), (REGISTER_COUNT, &value[..])]);
    }

    #[test]
    fn machine_code_runs_on_its_own_generation_from_its_architecture_on() {
        let cubin = |architecture| Cubin { architecture, exact: false, kernels: BTreeMap::new() };
        assert!(cubin(80).runs_on((8, 6)) && cubin(86).runs_on((8, 6)));
        assert!(!cubin(89).runs_on((8, 6)) && !cubin(80).runs_on((9, 0)));
        assert!(cubin(120).runs_on((12, 0)) && cubin(100).runs_on((10, 3)));
    }

    #[test]
    fn code_for_one_architecture_alone_runs_on_no_later_one() {
        assert_eq!([target(7, 0x5a_055a), target(7, 0x5a_0d5a)], [(90, false), (90, true)]);
        assert_eq!([target(8, 0x600_6402), target(8, 0x600_640a)], [(100, false), (100, true)]);
        let cubin = Cubin { architecture: 100, exact: true, kernels: BTreeMap::new() };
        assert!(cubin.runs_on((10, 0)) && !cubin.runs_on((10, 3)));
    }
}
