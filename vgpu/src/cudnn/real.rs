//! NVIDIA's cuDNN as installed beside PyTorch, for what needs no device.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use vramfit_vgpu_schema::{Cudnn, CudnnAnswer, folder};

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

/// Version of the program's own cuDNN, 10000 × major + 100 × minor + patch; 0 where there is none.
pub(super) fn version() -> usize {
    static VERSION: OnceLock<usize> = OnceLock::new();
    *VERSION.get_or_init(|| own().map_or(0, version_of))
}

fn version_of(library: &RealLibrary) -> usize {
    // SAFETY: size_t cudnnGetVersion(void), in all versions.
    let get = unsafe { library.function::<extern "C" fn() -> usize>(c"cudnnGetVersion") };
    get.map_or(0, |get| get())
}

/// Who answers, and with which functions.
struct Answer {
    by: CudnnAnswer,
    version: usize,
    functions: Option<Real>,
}

static ANSWER: OnceLock<Answer> = OnceLock::new();

/// The cuDNN that answers: the program's own if it is one that can do without a device, else one that
/// [`folder::CUDNN_VARIABLE`] names. None leaves the answers to a rule.
pub(super) fn library() -> Option<&'static Real> {
    ANSWER.get_or_init(find).functions.as_ref()
}

fn find() -> Answer {
    let answer = |by, library: &RealLibrary, version| {
        let functions = functions(library);
        functions.map(|functions| Answer { by, version, functions: Some(functions) })
    };
    let program = || {
        let version = version();
        (version >= FIRST_WITHOUT_DEVICE)
            .then(|| answer(CudnnAnswer::Program, own()?, version))
            .flatten()
    };
    let newer = || {
        let library = named()?;
        let version = version_of(&library);
        (version >= FIRST_WITHOUT_DEVICE)
            .then(|| answer(CudnnAnswer::Newer, &library, version))
            .flatten()
    };
    program().or_else(newer).unwrap_or(Answer {
        by: CudnnAnswer::Rule,
        version: 0,
        functions: None,
    })
}

/// For the report: who answered. None if nobody was asked.
pub(crate) fn source() -> Option<Cudnn> {
    ANSWER.get().map(|answer| Cudnn {
        program_version: version() as u64,
        answered_by: answer.by,
        answering_version: (answer.by != CudnnAnswer::Rule).then_some(answer.version as u64),
    })
}

fn named() -> Option<RealLibrary> {
    let path = std::env::var_os(folder::CUDNN_VARIABLE)?;
    let path = CString::new(path.into_encoded_bytes()).ok()?;
    RealLibrary::open_apart(&path)
}

fn own() -> Option<&'static RealLibrary> {
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
