use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vramfit_vgpu_cost::Speed;

use crate::SCHEMA;

/// The machine that a virtual GPU pretends to be: its driver and its devices, in CUDA order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Driver version as NVML prints it, e.g. `580.65.06`.
    pub driver_version: String,
    /// CUDA version the driver supports, as CUDA counts: 1000 × major + 10 × minor, e.g. 13000.
    pub cuda_version: i32,
    /// At least one device, at most 16.
    pub devices: Vec<Device>,
}

/// One virtual device. Sizes are bytes, clocks kHz, in the units of `cudaDeviceProp`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Product name as NVML prints it; by custom it ends in ` (virtual)`.
    pub name: String,
    /// `GPU-` and a UUID in lower-case hexadecimal.
    pub uuid: String,
    /// What NVML calls total: the memory on the board.
    pub total_memory_bytes: u64,
    /// What CUDA calls total: the board's memory less the driver's own reserve.
    pub usable_memory_bytes: u64,
    /// Memory that others hold and this device's programs cannot have: a desktop, a margin.
    pub held_memory_bytes: u64,
    /// Charged to each process when its CUDA context is made.
    pub context_bytes: u64,
    /// Compute capability, major and minor.
    pub compute_capability: (i32, i32),
    /// Streaming multiprocessors.
    pub multiprocessors: i32,
    /// Level-2 cache.
    pub l2_cache_bytes: i32,
    /// Shared memory of one multiprocessor.
    pub shared_memory_per_multiprocessor: i32,
    /// Shared memory that one block gets when it asks for more than the default 48 KiB.
    pub shared_memory_per_block_optin: i32,
    /// Resident threads of one multiprocessor.
    pub threads_per_multiprocessor: i32,
    /// Resident blocks of one multiprocessor.
    pub blocks_per_multiprocessor: i32,
    /// 32-bit registers of one multiprocessor.
    pub registers_per_multiprocessor: i32,
    /// Boost clock of the multiprocessors.
    pub clock_khz: i32,
    /// Clock of the memory.
    pub memory_clock_khz: i32,
    /// Width of the memory bus.
    pub memory_bus_bits: i32,
    /// PCI device id in NVML's order: device in the upper half, vendor (0x10de) in the lower.
    pub pci_device_id: u32,
    /// Board power limit in milliwatts, as NVML counts.
    pub power_limit_milliwatts: u32,
    /// How fast it is.
    pub speed: Speed,
}

/// Why a description could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The description's path.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The text is not a description.
    #[error("{} is not a device description: {source}", path.display())]
    Malformed {
        /// The description's path.
        path: PathBuf,
        /// Where and why parsing stopped.
        source: serde_json::Error,
    },
    /// The document is of another version.
    #[error("{} has schema {found}, expected {SCHEMA}", path.display())]
    Version {
        /// The description's path.
        path: PathBuf,
        /// Its `schema` field.
        found: u32,
    },
    /// The document is well formed but describes no possible machine.
    #[error("{} describes no possible machine: {reason}", path.display())]
    Impossible {
        /// The description's path.
        path: PathBuf,
        /// The first contradiction found.
        reason: String,
    },
}

impl Description {
    /// Most devices one description may hold.
    pub const MAX_DEVICES: usize = 16;

    /// Reads and checks the description at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is not a description of this [`SCHEMA`], or contradicts itself.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let path = path.to_path_buf();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(ReadError::Unreadable { path, source }),
        };
        let description: Self = match serde_json::from_str(&text) {
            Ok(description) => description,
            Err(source) => return Err(ReadError::Malformed { path, source }),
        };
        if description.schema != SCHEMA {
            return Err(ReadError::Version { path, found: description.schema });
        }
        match description.contradiction() {
            None => Ok(description),
            Some(reason) => Err(ReadError::Impossible { path, reason }),
        }
    }

    fn contradiction(&self) -> Option<String> {
        if self.devices.is_empty() || self.devices.len() > Self::MAX_DEVICES {
            return Some(format!(
                "{} devices, expected 1 to {}",
                self.devices.len(),
                Self::MAX_DEVICES
            ));
        }
        self.devices.iter().find_map(|device| {
            let Device { name, usable_memory_bytes: usable, total_memory_bytes: total, .. } =
                device;
            if usable > total {
                Some(format!("`{name}` has {usable} usable bytes of {total}"))
            } else if device.held_memory_bytes > *usable {
                Some(format!(
                    "`{name}` has {} bytes held of {usable} usable",
                    device.held_memory_bytes
                ))
            } else if device.multiprocessors < 1 {
                Some(format!("`{name}` has {} multiprocessors", device.multiprocessors))
            } else {
                None
            }
        })
    }
}
