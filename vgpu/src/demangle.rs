//! Names of C++ as people write them.

use std::ffi::{CStr, CString, c_char, c_int};

/// `__cxa_demangle` of the Itanium C++ ABI.
type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// `name`, if it is a mangled one and the process has a C++ runtime that reads it; else as it is.
pub(crate) fn demangled(name: &str) -> String {
    of_runtime(name).unwrap_or_else(|| name.to_owned())
}

fn of_runtime(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    // SAFETY: the name is zero-terminated; the answer is null where no library has the function.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: not null, and the ABI fixes what this name stands for.
    let demangle = unsafe { std::mem::transmute::<*mut libc::c_void, Demangle>(found) };
    let name = CString::new(name).ok()?;
    let null = std::ptr::null_mut();
    let mut status = 0;
    // SAFETY: with no buffer given the function allocates one; null tells that it could not.
    let text = unsafe { demangle(name.as_ptr(), null, std::ptr::null_mut(), &raw mut status) };
    if text.is_null() {
        return None;
    }
    // SAFETY: a zero-terminated text by `malloc`, which is ours.
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: as above, and no reference to it is left.
    unsafe { libc::free(text.cast()) };
    Some(owned)
}
