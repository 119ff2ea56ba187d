//! This library as the loader knows it: its path, and its exported symbols by name.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// The path by which this library was opened (a link keeps its own name).
pub(crate) fn path() -> Option<&'static Path> {
    static PATH: OnceLock<Option<Box<Path>>> = OnceLock::new();
    PATH.get_or_init(|| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the address is a function of this library; `info` is valid for writing.
        let found = unsafe { libc::dladdr(path as *const c_void, info.as_mut_ptr()) };
        // SAFETY: zeroed bytes are a valid `Dl_info`, and `dladdr` wrote a whole one if it succeeded.
        let info = unsafe { info.assume_init() };
        if found == 0 || info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: `dli_fname` is a zero-terminated text that lives as long as the library.
        let name = unsafe { CStr::from_ptr(info.dli_fname) };
        Some(Path::new(OsStr::from_bytes(name.to_bytes())).into())
    })
    .as_deref()
}

/// The address of the exported symbol `name` of this library, not of any other.
pub(crate) fn symbol(name: &str) -> Option<*mut c_void> {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let handle = *HANDLE.get_or_init(|| {
        let Some(path) = path().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok())
        else {
            return 0;
        };
        // SAFETY: the library is loaded already; RTLD_NOLOAD only looks it up.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) as usize }
    });
    let name = CString::new(name).ok()?;
    if handle == 0 {
        return None;
    }
    // SAFETY: the handle stays open for the life of the process; the name is zero-terminated.
    let address = unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr()) };
    if address.is_null() || !is_own(address) { None } else { Some(address) }
}

/// `dlsym` on a handle also searches the libraries this one depends on: libc is not ours to hand out.
fn is_own(address: *mut c_void) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` accepts any address; `info` is valid for writing.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return false;
    }
    // SAFETY: `dladdr` succeeded and wrote a whole `Dl_info`.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return false;
    }
    // SAFETY: `dli_fname` is a zero-terminated text that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    path().is_some_and(|path| path.as_os_str().as_bytes() == name.to_bytes())
}
