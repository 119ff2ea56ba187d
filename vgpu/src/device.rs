//! The machine this process sees: its description, which devices are visible, which is current.

use std::cell::Cell;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use vramfit_vgpu_schema::{Description, Device, folder};

use crate::memory::OutOfMemory;
use crate::{memory, own_library, report};

/// The description together with this process's view of it.
pub(crate) struct Machine {
    /// Which devices there are.
    pub(crate) description: Description,
    /// Folder of the virtual GPU.
    pub(crate) folder: PathBuf,
    /// CUDA ordinal → index in the description (`CUDA_VISIBLE_DEVICES`).
    visible: Vec<usize>,
}

impl Machine {
    /// The description's index of each CUDA ordinal.
    pub(crate) fn visible(&self) -> &[usize] {
        &self.visible
    }

    /// The description of CUDA ordinal `ordinal`.
    pub(crate) fn device(&self, ordinal: usize) -> Option<&Device> {
        self.visible.get(ordinal).map(|index| &self.description.devices[*index])
    }
}

/// The machine; none where no usable description was found, which is said once on stderr.
pub(crate) fn machine() -> Option<&'static Machine> {
    static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();
    MACHINE
        .get_or_init(|| match find() {
            Ok(machine) => {
                report::at_exit();
                Some(machine)
            }
            Err(reason) => {
                // Nobody else can tell why CUDA has no device here. A closed stderr loses the words.
                let _ = writeln!(std::io::stderr(), "vramfit-vgpu: no virtual GPU: {reason}");
                None
            }
        })
        .as_ref()
}

fn find() -> Result<Machine, String> {
    let beside_library = || Some(own_library::path()?.parent()?.to_path_buf());
    // A folder that holds this very library is meant even where the variable names another: a
    // planner that itself runs on a virtual GPU looks at those of its children.
    let folder = beside_library()
        .filter(|folder| folder.join(folder::DESCRIPTION).exists())
        .or_else(|| std::env::var_os(folder::VARIABLE).map(PathBuf::from))
        .ok_or_else(|| format!("{} is not set", folder::VARIABLE))?;
    let description =
        Description::read(&folder.join(folder::DESCRIPTION)).map_err(|error| error.to_string())?;
    let visible = match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(list) => parse_visible(&list, &description),
        Err(_) => (0..description.devices.len()).collect(),
    };
    Ok(Machine { description, folder, visible })
}

/// Reads `CUDA_VISIBLE_DEVICES` as CUDA does: ordinals or UUID prefixes; the list ends at the first
/// entry that names no device, and is empty when it names one twice (PyTorch's own reading of it in
/// `torch/cuda/__init__.py` says so).
fn parse_visible(list: &str, description: &Description) -> Vec<usize> {
    let mut visible = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let index = match entry.parse::<usize>() {
            Ok(index) => (index < description.devices.len()).then_some(index),
            Err(_) if entry.len() > "GPU-".len() => {
                description.devices.iter().position(|device| device.uuid.starts_with(entry))
            }
            Err(_) => None,
        };
        match index {
            Some(index) if visible.contains(&index) => return Vec::new(),
            Some(index) => visible.push(index),
            None => break,
        }
    }
    visible
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// CUDA ordinal of the calling thread's device.
pub(crate) fn current() -> usize {
    CURRENT.get()
}

/// Makes `ordinal` the calling thread's device.
pub(crate) fn set_current(ordinal: usize) {
    CURRENT.set(ordinal);
}

/// Makes the context of `ordinal` in this process, once; its bytes are charged.
pub(crate) fn make_context(ordinal: usize) -> Result<(), OutOfMemory> {
    memory::make_context(ordinal)
}

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had used CUDA. As with the real one, it cannot go on.
pub(crate) fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Notes that this process uses CUDA: a process forked from now on cannot. NVML alone is no such use;
/// PyTorch counts devices through it so that its workers can still be forked.
pub(crate) fn watch_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to an atomic, which is safe in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// A device described by `json`, in which its speed may be left out.
#[cfg(test)]
pub(crate) fn described(json: &str) -> Device {
    let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
    json["speed"] = serde_json::to_value(vramfit_vgpu_cost::Speed::small()).unwrap();
    serde_json::from_value(json).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine_with(uuids: &[&str]) -> Description {
        let devices = uuids
            .iter()
            .map(|uuid| {
                described(&format!(
                    r#"{{"name":"x","uuid":"{uuid}","total_memory_bytes":4,"usable_memory_bytes":4,
                    "held_memory_bytes":0,"context_bytes":0,"compute_capability":[8,6],
                    "multiprocessors":16,"l2_cache_bytes":1,"shared_memory_per_multiprocessor":1,
                    "shared_memory_per_block_optin":1,"threads_per_multiprocessor":1536,
                    "blocks_per_multiprocessor":16,"registers_per_multiprocessor":65536,
                    "clock_khz":1,"memory_clock_khz":1,"memory_bus_bits":128,"pci_device_id":1,
                    "power_limit_milliwatts":1}}"#
                ))
            })
            .collect();
        Description {
            schema: vramfit_vgpu_schema::SCHEMA,
            driver_version: "1".to_owned(),
            cuda_version: 13_000,
            devices,
        }
    }

    #[test]
    fn visible_devices_are_read_as_cuda_reads_them() {
        let two = machine_with(&["GPU-aa01", "GPU-bb02"]);
        for (list, expected) in [
            ("0,1", vec![0, 1]),
            ("1,0", vec![1, 0]),
            ("1", vec![1]),
            ("", vec![]),
            ("-1", vec![]),
            ("0,7,1", vec![0]),
            ("0,0", vec![]),
            ("GPU-bb", vec![1]),
            ("GPU-", vec![]),
        ] {
            assert_eq!(parse_visible(list, &two), expected, "{list}");
        }
    }
}
