//! NVIDIA's own libraries, where one is asked for what needs no device.

use std::ffi::{CStr, c_void};

/// A library of NVIDIA's that is or gets loaded beside this one; never unloaded.
pub(crate) struct RealLibrary(usize);

impl RealLibrary {
    /// The library `name` if the process has loaded it already.
    pub(crate) fn loaded(name: &CStr) -> Option<Self> {
        Self::open_with(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    }

    /// The library `name`, loaded now unless it was.
    pub(crate) fn open(name: &CStr) -> Option<Self> {
        Self::loaded(name).or_else(|| Self::open_with(name, libc::RTLD_LAZY))
    }

    /// The library at `path`, in a name space of its own: beside another version of it, which has
    /// parts of the same names.
    pub(crate) fn open_apart(path: &CStr) -> Option<Self> {
        // SAFETY: as in `open_with`.
        let handle = unsafe { libc::dlmopen(libc::LM_ID_NEWLM, path.as_ptr(), libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Self(handle as usize))
    }

    fn open_with(name: &CStr, flags: i32) -> Option<Self> {
        // SAFETY: the name is zero-terminated; NVIDIA's libraries may be loaded at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        (!handle.is_null()).then_some(Self(handle as usize))
    }

    /// The function `name`, as a function pointer type.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to that function.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
        // SAFETY: the handle is of a library that is never unloaded.
        let address = unsafe { libc::dlsym(self.0 as *mut c_void, name.as_ptr()) };
        // SAFETY: sizes are equal, and the caller vouches for the type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }
}
