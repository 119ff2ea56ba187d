//! This library as the loader knows it: its path, its exported symbols by name, and who calls it.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The path by which this library was opened (a link keeps its own name).
pub(crate) fn path() -> Option<&'static Path> {
    static PATH: OnceLock<Option<Box<Path>>> = OnceLock::new();
    PATH.get_or_init(|| library_of(path as *mut c_void).map(PathBuf::into_boxed_path)).as_deref()
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
    library_of(address).is_some_and(|library| path() == Some(&library))
}

/// The library that `address` lies in.
fn library_of(address: *mut c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` accepts any address; `info` is valid for writing.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: `dladdr` succeeded and wrote a whole `Dl_info`.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dli_fname` is a zero-terminated text that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// The libraries whose functions led into this one, innermost first.
pub(crate) fn callers() -> Vec<PathBuf> {
    const MOST: usize = 64;
    let mut frames = [std::ptr::null_mut(); MOST];
    // SAFETY: the array has room for as many frames as are asked for.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), MOST as libc::c_int) };
    let frames = frames.iter().take(usize::try_from(count).unwrap_or_default());
    let libraries = frames.filter_map(|address| library_of(*address));
    libraries.filter(|library| path() != Some(library)).collect()
}
