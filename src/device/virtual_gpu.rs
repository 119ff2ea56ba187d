use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nvml_wrapper::Nvml;
use tempfile::TempDir;
use vramfit_vgpu_schema::{Description, Device, SCHEMA, folder};

use super::budget::default_margin;
use super::nvml::open;
use super::python::{PythonSetup, lay_out_python, python_environment};
use super::{Budget, Platform};
use crate::error::{Error, ErrorKind};
use crate::profile::gpu::GpuProfile;
use crate::profile::limits::{Limits, REGISTERS};
use crate::units::{Bytes, Share};

/// How the product name of each virtual GPU ends.
pub const VIRTUAL_SUFFIX: &str = " (virtual)";

/// The driver that a virtual GPU states: the first of the branch that came with CUDA 13.0.
pub(super) const DRIVER_VERSION: &str = "580.65.06";
const CUDA_VERSION: i32 = 13_000;

/// File name of the virtual GPU's library.
const LIBRARY: &str = "libvramfit_vgpu.so";
/// Variable that names another one.
const LIBRARY_VARIABLE: &str = "VRAMFIT_VGPU_LIBRARY";
/// The copy that this process opens as NVML; see [`VirtualGpu::new`].
const OWN_NVML: &str = "nvml-of-vramfit.so";

/// What is asked of a virtual GPU besides its profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// Board memory in place of the profile's.
    pub vram: Option<Bytes>,
    /// The operating system planned for; of a virtual GPU only.
    pub platform: Platform,
    /// Set aside for others; `None` is what a desktop of Windows takes, or nothing.
    pub reserve: Option<Bytes>,
    /// Held back; `None` is 5 % and at least 200 MiB, or 3 % and 128 MiB without a display.
    pub margin: Option<Share>,
}

/// A virtual GPU, or several of one kind, in a private folder of its own, gone when this is dropped.
pub struct VirtualGpu {
    profile: GpuProfile,
    budget: Budget,
    devices: Vec<Device>,
    nvml: Arc<Nvml>,
    // Last, so that the library is closed before its file goes.
    folder: TempDir,
}

/// Folders of this process, those that are gone among them, for an end without unwinding.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the folders of all virtual GPUs of this process, which is about to end at once.
pub fn remove_folders() {
    for folder in folders().drain(..) {
        // Whoever is being unwound may have removed it already.
        let _ = fs::remove_dir_all(folder);
    }
}

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VirtualGpu {
    /// Lays out the folder of a card of this profile.
    ///
    /// # Errors
    /// When nothing is left to plan with, the library of the virtual GPU is not there, or the folder
    /// cannot be written.
    pub fn new(profile: &GpuProfile, setup: Setup) -> Result<Self, Error> {
        Self::several(profile, setup, 1)
    }

    /// Lays out the folder of `count` cards of this profile in one machine.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn several(profile: &GpuProfile, setup: Setup, count: u32) -> Result<Self, Error> {
        Self::lay_out(profile, budget(profile, setup)?, count)
    }

    /// Like [`Self::several`] with a budget that is known already: the twin of a real card.
    ///
    /// # Errors
    /// When the library of the virtual GPU is not there, or the folder cannot be written.
    pub fn with_budget(profile: &GpuProfile, budget: Budget, count: u32) -> Result<Self, Error> {
        Self::lay_out(profile, budget, count)
    }

    fn lay_out(profile: &GpuProfile, budget: Budget, count: u32) -> Result<Self, Error> {
        let library = library()?;
        let devices: Vec<_> =
            (0..count.max(1)).map(|index| describe(profile, &budget, index)).collect();
        let folder = lay_out(&library, &devices)
            .map_err(|source| Error::new(ErrorKind::VirtualGpuFolder { source }))?;
        // The dynamic linker takes each of these for the end of a path.
        if folder.path().as_os_str().as_bytes().iter().any(|byte| b" :;\t\n$".contains(byte)) {
            return Err(ErrorKind::TemporaryFolder { path: env::temp_dir() }.into());
        }
        // The dynamic linker knows libraries by inode: through the links, the second virtual GPU
        // that this process opened would be the first one again. A copy is a library of its own,
        // except on a file system that lets nothing be executed, where the link still serves.
        let own = folder.path().join(OWN_NVML);
        folders().push(folder.path().to_owned());
        let nvml = open(Some(own.as_os_str()))
            .or_else(|_| open(Some(folder.path().join(folder::LIBRARIES[2]).as_os_str())))?;
        Ok(Self { profile: profile.clone(), budget, devices, nvml: Arc::new(nvml), folder })
    }

    /// The profile it was made from.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Product name; ends in [`VIRTUAL_SUFFIX`].
    pub fn product(&self) -> &str {
        &self.devices[0].name
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.devices.len()
    }

    pub(super) fn uuid(&self) -> &str {
        &self.devices[0].uuid
    }

    /// What may be used of it, or of each.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    pub(super) fn nvml(&self) -> &Arc<Nvml> {
        &self.nvml
    }

    /// Variables that put a child on this virtual GPU. Kernels compiled for it go to caches of its
    /// own: those of the user must not learn of a card that is not there.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let folder = self.folder.path();
        let pairs = [
            (folder::VARIABLE, folder.as_os_str().to_owned()),
            // By its link here: `LD_PRELOAD` is a list, and cannot hold a path with a space in it.
            ("LD_PRELOAD", prepend(folder.join(LIBRARY).as_os_str(), "LD_PRELOAD")),
            ("LD_LIBRARY_PATH", prepend(folder.as_os_str(), "LD_LIBRARY_PATH")),
            ("TRITON_LIBCUDA_PATH", folder.as_os_str().to_owned()),
            ("TRITON_CACHE_DIR", folder.join("triton").into_os_string()),
            ("TORCHINDUCTOR_CACHE_DIR", folder.join("inductor").into_os_string()),
            ("CUDA_CACHE_PATH", folder.join("cuda").into_os_string()),
            ("CUDA_VISIBLE_DEVICES", OsString::from(self.ordinals())),
            ("PYTHONHASHSEED", OsString::from("0")),
        ];
        pairs.into_iter().map(|(name, value)| (OsString::from(name), value)).collect()
    }

    /// Further variables for a child that may be Python, or start it: small tensors are really
    /// computed there, and lines of the program are known to the report.
    pub fn python_environment(&self, setup: PythonSetup) -> Vec<(OsString, OsString)> {
        python_environment(self.folder.path(), setup)
    }

    fn ordinals(&self) -> String {
        (0..self.count()).map(|ordinal| ordinal.to_string()).collect::<Vec<_>>().join(",")
    }
}

/// `first`, then what the variable holds now unless it starts so already.
fn prepend(first: &OsStr, variable: &str) -> OsString {
    let mut value = first.to_owned();
    if let Some(rest) = env::var_os(variable).filter(|rest| !rest.is_empty() && rest != first) {
        value.push(":");
        value.push(rest);
    }
    value
}

/// What may be used of a card of this profile.
///
/// # Errors
/// When nothing is left.
pub fn budget(profile: &GpuProfile, setup: Setup) -> Result<Budget, Error> {
    let windows = setup.platform.is_windows();
    // Under Windows CUDA's total is NVML's (docs/profiles.md).
    let driver = match windows {
        true => Bytes::ZERO,
        false => profile.total_memory.value.saturating_sub(profile.usable_memory.value),
    };
    let display = profile.segment.has_display();
    let desktop = if windows && display { Platform::WINDOWS_DESKTOP } else { Bytes::ZERO };
    let reserve = setup.reserve.unwrap_or(desktop);
    let total = setup.vram.unwrap_or(profile.total_memory.value);
    let margin = match setup.margin {
        Some(margin) => margin.of(total),
        // A context that may be larger than was reckoned with is one more surprise.
        None => default_margin(total, display) + profile.context_uncertainty(),
    };
    Budget::new(total, total.saturating_sub(driver), Bytes::ZERO, reserve, margin)
}

/// The library beside the executable, or the one that [`LIBRARY_VARIABLE`] names.
fn library() -> Result<PathBuf, Error> {
    let named = env::var_os(LIBRARY_VARIABLE);
    let path = match &named {
        Some(path) => PathBuf::from(path),
        None => beside_executable(LIBRARY),
    };
    let Ok(path) = path.canonicalize() else {
        return Err(ErrorKind::VirtualGpuMissing { path }.into());
    };
    // It would be taken for a broken driver.
    let is_ours = |text: Vec<u8>| {
        let sign = folder::VARIABLE.as_bytes();
        text.windows(sign.len()).any(|window| window == sign)
    };
    if named.is_some() && !(path.is_file() && fs::read(&path).is_ok_and(is_ours)) {
        return Err(ErrorKind::NotTheVirtualGpu { path }.into());
    }
    Ok(path)
}

/// Where a file lies that is built together with this program.
pub(crate) fn beside_executable(name: &str) -> PathBuf {
    let folder = env::current_exe().ok().and_then(|exe| exe.canonicalize().ok());
    match folder.as_deref().and_then(Path::parent) {
        // Test programs lie one folder further down.
        Some(folder) if folder.ends_with("deps") => folder.with_file_name(name),
        Some(folder) => folder.join(name),
        None => PathBuf::from(name),
    }
}

fn lay_out(library: &Path, devices: &[Device]) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("vramfit-").tempdir()?;
    let description = Description {
        schema: SCHEMA,
        driver_version: DRIVER_VERSION.to_owned(),
        cuda_version: CUDA_VERSION,
        devices: devices.to_vec(),
    };
    fs::write(folder.path().join(folder::DESCRIPTION), serde_json::to_vec_pretty(&description)?)?;
    for name in folder::LIBRARIES.into_iter().chain([LIBRARY]) {
        std::os::unix::fs::symlink(library, folder.path().join(name))?;
    }
    fs::copy(library, folder.path().join(OWN_NVML))?;
    lay_out_python(folder.path())?;
    Ok(folder)
}

/// Device `index`, such that CUDA's free memory, before a context is made, equals the budget.
fn describe(profile: &GpuProfile, budget: &Budget, index: u32) -> Device {
    let capability = profile.compute_capability.value;
    let limits = Limits::of(capability);
    Device {
        name: match profile.product.strip_suffix(VIRTUAL_SUFFIX) {
            Some(_) => profile.product.clone(),
            None => format!("{}{VIRTUAL_SUFFIX}", profile.product),
        },
        uuid: uuid(&profile.name, index),
        total_memory_bytes: budget.total.get(),
        usable_memory_bytes: budget.usable.get(),
        held_memory_bytes: (budget.usable - budget.budget).get(),
        context_bytes: profile.context.value.get(),
        compute_capability: (capability.major as i32, capability.minor as i32),
        multiprocessors: profile.multiprocessors.value as i32,
        l2_cache_bytes: profile.l2_cache.value.get() as i32,
        shared_memory_per_multiprocessor: limits.shared_kib * 1024,
        shared_memory_per_block_optin: limits.block_shared_kib * 1024,
        threads_per_multiprocessor: limits.threads,
        blocks_per_multiprocessor: limits.blocks,
        registers_per_multiprocessor: REGISTERS,
        clock_khz: profile.boost_clock.value as i32 * 1000,
        memory_clock_khz: profile.memory_clock_khz() as i32,
        memory_bus_bits: profile.memory_bus.value as i32,
        // Which board of the family: not known to a profile, and no memory depends on it.
        pci_device_id: 0x10de,
        power_limit_milliwatts: profile.power.value * 1000,
        speed: profile.speed(),
    }
}

/// The same for the same profile on every machine: the 128-bit FNV-1a hash of its name, and of its
/// index if it is not the first, marked as version 8 (RFC 9562: free form).
fn uuid(name: &str, index: u32) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let further = if index == 0 { String::new() } else { format!("#{index}") };
    let hash = name
        .bytes()
        .chain(further.bytes())
        .fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    let marked = hash & !(0xf << 76) & !(0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let hex = format!("{marked:032x}");
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::profile::gpu::{Basis, ComputeCapability, Fact, Segment};

    fn fact<T>(value: T) -> Fact<T> {
        Fact { value, basis: Basis::Inferred, source: "test".to_owned() }
    }

    pub(in crate::device) fn profile() -> GpuProfile {
        GpuProfile {
            name: "rtx-3050-laptop-4gb".to_owned(),
            product: "NVIDIA GeForce RTX 3050 4GB Laptop GPU".to_owned(),
            aliases: Vec::new(),
            segment: Segment::Laptop,
            architecture: "Ampere".to_owned(),
            compute_capability: fact(ComputeCapability { major: 8, minor: 6 }),
            multiprocessors: fact(16),
            total_memory: fact(Bytes::mib(4096)),
            usable_memory: fact(Bytes::mib(3770)),
            context: fact(Bytes::mib(100)),
            l2_cache: fact(Bytes::mib(2)),
            memory_bus: fact(128),
            bandwidth: fact(192.0),
            boost_clock: fact(1740),
            power: fact(80),
            notes: String::new(),
            calibration: None,
        }
    }

    #[test]
    fn free_memory_of_the_described_device_is_the_budget() {
        let setup = Setup { reserve: Some(Bytes::mib(600)), ..Setup::default() };
        let budget = budget(&profile(), setup).unwrap();
        let device = describe(&profile(), &budget, 0);
        assert_eq!(
            device.usable_memory_bytes - device.held_memory_bytes,
            budget.budget.get(),
            "{budget:?}"
        );
        assert_eq!(device.total_memory_bytes, Bytes::gib(4).get());
        assert!(device.name.ends_with(VIRTUAL_SUFFIX));
        assert_eq!((device.memory_bus_bits, device.memory_clock_khz), (128, 6_000_000));
    }

    #[test]
    fn another_board_size_keeps_the_drivers_reserve() {
        let setup = Setup { vram: Some(Bytes::gib(8)), ..Setup::default() };
        let budget = budget(&profile(), setup).unwrap();
        assert_eq!(budget.usable, Bytes::mib(8192 - 326));
    }

    #[test]
    fn windows_lets_programs_have_the_boards_memory_and_its_desktop_takes_from_it() {
        let setup = Setup { platform: Platform::Windows, ..Setup::default() };
        let windows = budget(&profile(), setup).unwrap();
        assert_eq!(windows.usable, Bytes::mib(4096));
        assert_eq!(windows.reserve, Platform::WINDOWS_DESKTOP);
        let setup = Setup { reserve: Some(Bytes::mib(10)), ..setup };
        assert_eq!(budget(&profile(), setup).unwrap().reserve, Bytes::mib(10), "as was said");
    }

    #[test]
    fn the_margin_grows_by_what_the_context_may_be_larger_unless_it_was_said() {
        let profile = profile();
        let larger = profile.context_uncertainty();
        assert!(larger > Bytes::mib(50), "{larger}");
        let stated = budget(&profile, Setup::default()).unwrap();
        let default = default_margin(Bytes::gib(4), true);
        assert_eq!(stated.margin, default + larger);
        let margin = Some(Share::Bytes(Bytes::mib(7)));
        let said = budget(&profile, Setup { margin, ..Setup::default() }).unwrap();
        assert_eq!(said.margin, Bytes::mib(7));
    }

    #[test]
    fn uuids_are_well_formed_and_stable() {
        assert_eq!(uuid("rtx-3050-laptop-4gb", 1), uuid("rtx-3050-laptop-4gb", 1));
        assert_ne!(uuid("rtx-3050-laptop-4gb", 0), uuid("rtx-3050-laptop-6gb", 0));
        assert_ne!(uuid("t4", 0), uuid("t4", 1));
        let uuid = uuid("t4", 0);
        let lengths: Vec<_> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [3, 8, 4, 4, 4, 12], "{uuid}");
        assert_eq!(&uuid[18..19], "8", "{uuid}");
    }
}
