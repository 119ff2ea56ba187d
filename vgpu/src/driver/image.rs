//! What a program loads as a module: machine code, PTX, or a container of either.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_void};

use vramfit_vgpu_schema::Device;

use crate::cubin::{self, Cubin, Resources};
use crate::fat_binary;
use crate::runtime::TYPICAL_REGISTERS;
use crate::runtime::status::{
    INVALID_IMAGE, INVALID_VALUE, NO_KERNEL_IMAGE, SYMBOL_NOT_FOUND, Status,
};

/// Code that was loaded.
pub(super) enum Image {
    /// Machine code: what each kernel needs is known.
    Cubin(Cubin),
    /// Text that the driver would compile: names are known.
    Ptx(BTreeSet<String>),
    /// A container, whose parts may be compressed: not read.
    Container,
}

/// A kernel of a module.
pub(super) struct Found {
    /// What it needs; none where it is not known, as its machine code is not.
    pub(super) resources: Option<Resources>,
    /// Architecture of its machine code; none where the driver would compile it for the device.
    pub(super) architecture: Option<i32>,
}

impl Image {
    /// The code at `image`, for `device`.
    ///
    /// # Safety
    /// `image` is null or points at a whole cubin, at a container, or at zero-terminated PTX.
    pub(super) unsafe fn at(image: *const c_void, device: &Device) -> Result<Self, Status> {
        if image.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: by this function's contract; PTX is a text of more than three characters, and what is
        // shorter ends with its zero, at which the comparison stops.
        unsafe {
            let begins = |magic: &[u8; 4]| {
                let at = |index: usize| *image.cast::<u8>().add(index);
                (0..4).all(|index| at(index) == magic[index])
            };
            if begins(&cubin::MAGIC) {
                return Self::of_cubin(Cubin::at(image.cast()), device);
            }
            if fat_binary::MAGICS.iter().any(|magic| begins(&magic.to_le_bytes())) {
                return Ok(Self::Container);
            }
            Self::of_ptx(CStr::from_ptr(image.cast::<c_char>()).to_str().ok())
        }
    }

    /// The code in a file's `bytes`, for `device`.
    pub(super) fn of_file(bytes: &[u8], device: &Device) -> Result<Self, Status> {
        if bytes.starts_with(&cubin::MAGIC) {
            return Self::of_cubin(Cubin::read(bytes), device);
        }
        if fat_binary::MAGICS.iter().any(|magic| bytes.starts_with(&magic.to_le_bytes())) {
            return Ok(Self::Container);
        }
        Self::of_ptx(std::str::from_utf8(bytes).ok())
    }

    fn of_cubin(cubin: Option<Cubin>, device: &Device) -> Result<Self, Status> {
        let cubin = cubin.ok_or(INVALID_IMAGE)?;
        if cubin.runs_on(device.compute_capability) {
            Ok(Self::Cubin(cubin))
        } else {
            Err(NO_KERNEL_IMAGE)
        }
    }

    /// PTX begins with its version and names its kernels with `.entry` (PTX ISA).
    fn of_ptx(text: Option<&str>) -> Result<Self, Status> {
        let text = text.filter(|text| text.contains(".version")).ok_or(INVALID_IMAGE)?;
        let mut words = text.split(|letter: char| letter.is_whitespace() || letter == '(');
        let mut names = BTreeSet::new();
        while words.any(|word| word == ".entry") {
            names.extend(words.find(|word| !word.is_empty()).map(str::to_owned));
        }
        Ok(Self::Ptx(names))
    }

    /// The kernel `name`.
    pub(super) fn find(&self, name: &str) -> Result<Found, Status> {
        let unknown = Found { resources: None, architecture: None };
        match self {
            Self::Cubin(cubin) => {
                let resources = cubin.kernels.get(name).ok_or(SYMBOL_NOT_FOUND)?;
                let architecture = Some(cubin.architecture);
                Ok(Found { resources: Some(*resources), architecture })
            }
            Self::Ptx(names) => names.contains(name).then_some(unknown).ok_or(SYMBOL_NOT_FOUND),
            Self::Container => Ok(unknown),
        }
    }
}

impl Found {
    /// What the kernel is taken to need.
    pub(super) fn needs(&self) -> Resources {
        let typical = Resources { registers: TYPICAL_REGISTERS as u32, ..Resources::default() };
        self.resources.unwrap_or(typical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_names_its_kernels_and_other_text_is_no_image() {
        let text = ".version 8.4\n.target sm_86\n.visible .entry add(\n.param .u64 a)\n{ ret; }\n\
                    .entry\tsecond (.param .u64 b) { ret; }\n.func helper() { ret; }";
        let Ok(image) = Image::of_ptx(Some(text)) else { panic!("no PTX") };
        for name in ["add", "second"] {
            assert!(image.find(name).is_ok_and(|found| found.needs().registers == 32), "{name}");
        }
        assert_eq!(image.find("helper").err(), Some(SYMBOL_NOT_FOUND));
        assert_eq!(Image::of_ptx(Some("no code")).err(), Some(INVALID_IMAGE));
    }
}
