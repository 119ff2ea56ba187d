//! Kernels: what the CUDA compiler registers for each library at load time, and how often each is
//! launched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError, RwLock};

use vramfit_vgpu_schema::{Description, Device, LoadedCode};

use crate::by_address::ByAddress;
use crate::fat_binary::{self, Code};
use crate::launch::fill::FillElement;
use crate::work::Recipe;

/// A kernel that was looked up to be launched. Never freed: launches may still be under way, and the
/// report counts those of libraries and modules that are closed by then.
pub(crate) struct Kernel {
    /// Mangled name, or the name of the library call that stands for it.
    pub(crate) name: String,
    /// Launches so far.
    pub(crate) launches: AtomicU64,
    /// Set for kernels that fill with one constant.
    pub(crate) fill: Option<FillElement>,
    /// How to tell what a launch asks of the device.
    pub(crate) recipe: Recipe,
    /// Handle of the fat binary it came from, 0 for a library call.
    binary: usize,
    /// Its code on each CUDA ordinal, looked up once.
    code: [OnceLock<Option<Code>>; Description::MAX_DEVICES],
}

impl Kernel {
    fn leak(name: String, binary: usize) -> &'static Self {
        let fill = FillElement::of(&name);
        let launches = AtomicU64::new(0);
        let (recipe, code) = Default::default();
        let kernel: &'static Self =
            Box::leak(Box::new(Self { name, launches, fill, recipe, binary, code }));
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(kernel);
        kernel
    }

    /// The code that CUDA ordinal `ordinal`, a `device`, runs; none if its library was not built for
    /// such a device.
    pub(crate) fn code(&self, ordinal: usize, device: &Device) -> Option<Code> {
        *self.code[ordinal]
            .get_or_init(|| fat_binary::code_for(self.binary, device.compute_capability))
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

static ALL: Mutex<Vec<&'static Kernel>> = Mutex::new(Vec::new());
static REGISTERED: LazyLock<Mutex<Registry>> = LazyLock::new(Default::default);
static LAUNCHED: LazyLock<RwLock<ByAddress<&'static Kernel>>> = LazyLock::new(Default::default);
static NAMED: LazyLock<RwLock<HashMap<&'static str, &'static Kernel>>> =
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

/// The kernel known by `name` alone: of a module loaded at run time, or the stand-in for a library call.
pub(crate) fn named(name: &str) -> &'static Kernel {
    if let Some(kernel) = NAMED.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return kernel;
    }
    let mut named = NAMED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(kernel) = named.get(name) {
        return kernel;
    }
    let kernel = Kernel::leak(name.to_owned(), 0);
    named.insert(&kernel.name, kernel);
    kernel
}

/// Launches so far of each kernel by name; several may share one.
pub(crate) fn launches() -> BTreeMap<&'static str, u64> {
    let mut launches = BTreeMap::new();
    for kernel in ALL.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        match kernel.launches.load(Ordering::Relaxed) {
            0 => {}
            count => *launches.entry(kernel.name.as_str()).or_insert(0) += count,
        }
    }
    launches
}

/// What a device has loaded of the code of libraries: with lazy loading, CUDA's default, a kernel
/// and what it needs of its module when it is first launched.
pub(crate) fn loaded_code(ordinal: usize) -> LoadedCode {
    let mut loaded = LoadedCode::default();
    let mut modules = BTreeSet::new();
    for kernel in ALL.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let Some(Some(code)) = kernel.code[ordinal].get() else { continue };
        if kernel.launches.load(Ordering::Relaxed) == 0 {
            continue;
        }
        loaded.kernels += 1;
        if modules.insert(kernel.binary) {
            loaded.modules += 1;
            loaded.module_bytes += code.bytes;
        }
    }
    loaded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_counted_by_name_and_outlive_their_library() {
        let stub = std::ptr::without_provenance(0x7001);
        register(stub, c"of_a_library".as_ptr(), 0x7000);
        let kernel = find(stub).unwrap();
        for kernel in [kernel, kernel, named("of_a_module"), named("of_a_module")] {
            kernel.launches.fetch_add(1, Ordering::Relaxed);
        }
        unregister(0x7000);
        assert!(find(stub).is_none());
        let launches = launches();
        assert_eq!((launches["of_a_library"], launches["of_a_module"]), (2, 2));
    }
}
