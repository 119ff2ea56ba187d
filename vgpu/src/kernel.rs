//! Kernels: what the CUDA compiler registers for each library at load time, and how often each is
//! launched.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};

use crate::by_address::ByAddress;
use crate::launch::fill::FillElement;

/// A kernel that was launched at least once. Never freed: launches may still be under way.
pub(crate) struct Kernel {
    /// Mangled name, or the name of the library call that stands for it.
    pub(crate) name: String,
    /// Launches so far.
    pub(crate) launches: AtomicU64,
    /// Set for kernels that fill with one constant.
    pub(crate) fill: Option<FillElement>,
    /// Handle of the fat binary it came from, 0 for a library call.
    pub(crate) binary: usize,
}

impl Kernel {
    fn leak(name: String, binary: usize) -> &'static Self {
        let fill = FillElement::of(&name);
        Box::leak(Box::new(Self { name, launches: AtomicU64::new(0), fill, binary }))
    }
}

/// What `__cudaRegisterFunction` was told: the name stays where the library has it until it is needed,
/// since PyTorch registers some ten thousand kernels at load and launches a few hundred.
struct Registered {
    name: usize,
    binary: usize,
}

#[derive(Default)]
struct Registry {
    kernels: ByAddress<Registered>,
    /// Stubs by fat binary: PyTorch closes hundreds of them when it ends, and must not look through
    /// all kernels for each.
    stubs: ByAddress<Vec<usize>>,
}

static REGISTERED: LazyLock<Mutex<Registry>> = LazyLock::new(Default::default);
static LAUNCHED: LazyLock<RwLock<ByAddress<&'static Kernel>>> = LazyLock::new(Default::default);
static CALLS: LazyLock<RwLock<HashMap<&'static str, &'static Kernel>>> =
    LazyLock::new(Default::default);

/// Notes that host stub `stub` stands for the kernel `name` of fat binary `binary`.
pub(crate) fn register(stub: *const c_void, name: *const c_char, binary: usize) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.kernels.insert(stub as usize, Registered { name: name as usize, binary });
    registered.stubs.entry(binary).or_default().push(stub as usize);
}

/// Forgets the kernels of `binary`: its library is being closed, and its names go with it.
pub(crate) fn unregister(binary: usize) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    for stub in registered.stubs.remove(&binary).unwrap_or_default() {
        registered.kernels.remove(&stub);
    }
    let mut launched = LAUNCHED.write().unwrap_or_else(PoisonError::into_inner);
    launched.retain(|_, kernel| kernel.binary != binary);
}

/// The kernel behind host stub `stub`.
pub(crate) fn find(stub: *const c_void) -> Option<&'static Kernel> {
    let key = stub as usize;
    if let Some(kernel) = LAUNCHED.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Some(kernel);
    }
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let Registered { name, binary } = registered.kernels.get(&key)?;
    // SAFETY: the name is a zero-terminated text in the registering library, which is still open:
    // `unregister` runs before its memory goes, and the lock is held.
    let name = unsafe { CStr::from_ptr(*name as *const c_char) };
    let mut launched = LAUNCHED.write().unwrap_or_else(PoisonError::into_inner);
    Some(
        *launched
            .entry(key)
            .or_insert_with(|| Kernel::leak(name.to_string_lossy().into_owned(), *binary)),
    )
}

/// The stand-in for library call `name`.
pub(crate) fn of_call(name: &'static str) -> &'static Kernel {
    if let Some(kernel) = CALLS.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return kernel;
    }
    let mut calls = CALLS.write().unwrap_or_else(PoisonError::into_inner);
    calls.entry(name).or_insert_with(|| Kernel::leak(name.to_owned(), 0))
}

/// A kernel of a module loaded at run time, known by name alone.
pub(crate) fn of_module(name: &str) -> &'static Kernel {
    Kernel::leak(name.to_owned(), 0)
}

/// All kernels launched so far.
pub(crate) fn launched() -> Vec<&'static Kernel> {
    let kernels = LAUNCHED.read().unwrap_or_else(PoisonError::into_inner);
    let calls = CALLS.read().unwrap_or_else(PoisonError::into_inner);
    kernels
        .values()
        .chain(calls.values())
        .copied()
        .filter(|kernel| kernel.launches.load(Ordering::Relaxed) > 0)
        .collect()
}
