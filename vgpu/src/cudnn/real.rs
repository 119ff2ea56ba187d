//! NVIDIA's cuDNN as installed beside PyTorch, for what needs no device.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use crate::activity;
use crate::entry::Out;
use crate::real_library::RealLibrary;

/// First version that takes device properties instead of a device: 9.8.0.
const FIRST_WITHOUT_DEVICE: usize = 90_800;

/// A descriptor of the backend interface.
pub(super) type Descriptor = *mut c_void;

/// The functions used, with the types of cudnn_graph.h (cuDNN 9).
pub(super) struct Real {
    pub(super) create: extern "C" fn(i32, *mut Descriptor) -> i32,
    pub(super) destroy: extern "C" fn(Descriptor) -> i32,
    pub(super) finalize: extern "C" fn(Descriptor) -> i32,
    pub(super) set: extern "C" fn(Descriptor, i32, i32, i64, *const c_void) -> i32,
    pub(super) get: extern "C" fn(Descriptor, i32, i32, i64, *mut i64, *mut c_void) -> i32,
    pub(super) error_string: extern "C" fn(i32) -> *const c_char,
    pub(super) last_error: extern "C" fn(Out<u8>, usize),
}

/// Version of the installed cuDNN, 10000 × major + 100 × minor + patch; 0 where there is none.
pub(super) fn version() -> usize {
    static VERSION: OnceLock<usize> = OnceLock::new();
    *VERSION.get_or_init(|| {
        // SAFETY: size_t cudnnGetVersion(void), in all versions.
        let get = file()
            .and_then(|it| unsafe { it.function::<extern "C" fn() -> usize>(c"cudnnGetVersion") });
        get.map_or(0, |get| get())
    })
}

/// The installed cuDNN, if it is one that can do without a device.
pub(super) fn library() -> Option<&'static Real> {
    static REAL: OnceLock<Option<Real>> = OnceLock::new();
    REAL.get_or_init(|| if version() < FIRST_WITHOUT_DEVICE { None } else { functions(file()?) })
        .as_ref()
}

/// As [`library`]; its absence is named in the report as the reason why `call` was refused.
pub(super) fn library_for(call: &'static str) -> Option<&'static Real> {
    let found = library();
    if found.is_none() {
        activity::not_implemented(call);
    }
    found
}

fn file() -> Option<&'static RealLibrary> {
    static FILE: OnceLock<Option<RealLibrary>> = OnceLock::new();
    FILE.get_or_init(|| RealLibrary::open(c"libcudnn.so.9")).as_ref()
}

fn functions(library: &RealLibrary) -> Option<Real> {
    // SAFETY: the types are those of cudnn_graph.h in every cuDNN 9.
    unsafe {
        Some(Real {
            create: library.function(c"cudnnBackendCreateDescriptor")?,
            destroy: library.function(c"cudnnBackendDestroyDescriptor")?,
            finalize: library.function(c"cudnnBackendFinalize")?,
            set: library.function(c"cudnnBackendSetAttribute")?,
            get: library.function(c"cudnnBackendGetAttribute")?,
            error_string: library.function(c"cudnnGetErrorString")?,
            last_error: library.function(c"cudnnGetLastErrorString")?,
        })
    }
}
