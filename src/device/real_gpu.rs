use std::ffi::OsString;
use std::sync::Arc;

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use serde::{Deserialize, Serialize};

use super::budget::default_margin;
use super::nvml::{failure, is_absent, open};
use super::{Budget, Setup};
use crate::error::{Error, ErrorKind};
use crate::profile::gpu::ComputeCapability;
use crate::profile::limits::Limits;
use crate::units::Bytes;

/// A card of this machine, as NVML states it.
pub struct RealGpu {
    /// `GPU-…`; how children are told to use it.
    pub uuid: String,
    /// Product name.
    pub product: String,
    /// Driver version.
    pub driver: String,
    /// CUDA compute capability.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors, where the driver tells the number of cores.
    pub multiprocessors: Option<u32>,
    /// Highest clock of the multiprocessors in MHz.
    pub clock: Option<u32>,
    /// Power limit in milliwatts.
    pub power_limit: Option<u32>,
    /// What NVML said of its memory when it was opened.
    pub memory: BoardMemory,
    /// What may be used of it now.
    pub budget: Budget,
    pub(super) nvml: Arc<Nvml>,
}

impl RealGpu {
    /// Variables that put a child on this card and no other.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            (OsString::from("CUDA_VISIBLE_DEVICES"), OsString::from(&self.uuid)),
            (OsString::from("CUDA_DEVICE_ORDER"), OsString::from("PCI_BUS_ID")),
        ]
    }
}

/// A board's memory in the words of NVML's second version of the question, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardMemory {
    /// On the board.
    pub total: Bytes,
    /// Kept by the driver and the firmware.
    pub reserved: Bytes,
    /// Not taken by anyone.
    pub free: Bytes,
    /// Taken; whether the reserve is among it depends on the driver.
    pub used: Bytes,
}

impl BoardMemory {
    /// What programs hold. Drivers disagree on whether `used` counts the reserve; what adds up to the
    /// total decides.
    pub fn held(self) -> Bytes {
        let Self { total, reserved, free, used } = self;
        match free.get().saturating_add(used.get()).saturating_add(reserved.get()) {
            sum if sum == total.get() => used,
            _ => used.saturating_sub(reserved),
        }
    }
}

/// The cards of this machine.
pub struct RealGpus {
    nvml: Arc<Nvml>,
    driver: String,
}

impl RealGpus {
    /// Asks the driver. `None` when there is no driver: no NVIDIA GPU as far as one can tell.
    ///
    /// # Errors
    /// When there is a driver, but it does not answer.
    pub fn find() -> Result<Option<Self>, Error> {
        let nvml = match open(None) {
            Ok(nvml) => nvml,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let driver = nvml.sys_driver_version().map_err(|error| failure("NVML", &error))?;
        let found = nvml.device_count().map_err(|error| failure("NVML", &error))?;
        Ok((found > 0).then(|| Self { nvml: Arc::new(nvml), driver }))
    }

    /// The NVML that was asked.
    pub fn nvml(&self) -> &Arc<Nvml> {
        &self.nvml
    }

    /// Index, UUID and product name of each card that answers.
    pub fn list(&self) -> Vec<(u32, String, String)> {
        let count = self.nvml.device_count().unwrap_or(0);
        (0..count)
            .filter_map(|index| {
                let device = self.nvml.device_by_index(index).ok()?;
                Some((index, device.uuid().ok()?, device.name().ok()?))
            })
            .collect()
    }

    /// The card called `name`: an index, a UUID or its beginning, or a product name with or without
    /// `NVIDIA GeForce`. `None` when no card is called so.
    pub fn named(&self, name: &str) -> Option<u32> {
        let cards = self.list();
        let plain = |text: &str| {
            let text = text.to_ascii_lowercase();
            let text = text.strip_prefix("nvidia ").unwrap_or(&text);
            text.strip_prefix("geforce ").unwrap_or(text).to_owned()
        };
        cards.iter().find_map(|(index, uuid, product)| {
            let by_uuid = name.len() > 8 && uuid.starts_with(name);
            (name == index.to_string() || by_uuid || plain(product) == plain(name))
                .then_some(*index)
        })
    }

    /// The card at `index` with its budget as of now.
    ///
    /// # Errors
    /// When NVML does not tell what is needed, or nothing is left to plan with.
    pub fn open(&self, index: u32, setup: Setup) -> Result<RealGpu, Error> {
        let what = format!("GPU {index}");
        let failed = |error: NvmlError| failure(&what, &error);
        let device = self.nvml.device_by_index(index).map_err(failed)?;
        let capability = device.cuda_compute_capability().map_err(failed)?;
        let compute_capability = ComputeCapability {
            major: u32::try_from(capability.major).unwrap_or(0),
            minor: u32::try_from(capability.minor).unwrap_or(0),
        };
        if compute_capability.major == 0 {
            return Err(Error::new(ErrorKind::Nvml {
                what,
                reason: "its compute capability is not known".to_owned(),
                absent: false,
            }));
        }
        let memory = board_memory(&device).map_err(failed)?;
        let display = device.is_display_active().unwrap_or(true);
        let cores = Limits::of(compute_capability).cores;
        Ok(RealGpu {
            uuid: device.uuid().map_err(failed)?,
            product: device.name().map_err(failed)?,
            driver: self.driver.clone(),
            compute_capability,
            multiprocessors: device.num_cores().ok().map(|count| (count / cores).max(1)),
            clock: device.max_clock_info(Clock::SM).ok(),
            power_limit: device.power_management_limit().ok(),
            memory,
            budget: budget_now(memory, display, setup)?,
            nvml: Arc::clone(&self.nvml),
        })
    }
}

/// What NVML says of a board's memory.
///
/// # Errors
/// As NVML says.
pub fn board_memory(device: &Device<'_>) -> Result<BoardMemory, NvmlError> {
    let memory = device.memory_info()?;
    Ok(BoardMemory {
        total: Bytes(memory.total),
        reserved: Bytes(memory.reserved),
        free: Bytes(memory.free),
        used: Bytes(memory.used),
    })
}

/// What may be used of a card, without this program's part in it.
fn budget_now(memory: BoardMemory, display: bool, setup: Setup) -> Result<Budget, Error> {
    let (total, driver, held) = (memory.total, memory.reserved, memory.held());
    let cap = setup.vram.map_or(total, |vram| vram.min(total));
    let margin = match setup.margin {
        Some(margin) => margin.of(cap),
        None => default_margin(cap, display),
    };
    Budget::new(cap, cap.saturating_sub(driver), held, setup.reserve.unwrap_or_default(), margin)
}

/// Bytes that NVML attributes to the processes for which `is_own` holds, where it does.
pub(crate) fn process_bytes(
    device: &Device<'_>,
    mut is_own: impl FnMut(u32) -> bool,
) -> Option<u64> {
    let processes = device.running_compute_processes().ok()?;
    let mut own = processes.iter().filter(|process| is_own(process.pid)).peekable();
    own.peek()?;
    own.map(|process| match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    })
    .sum()
}
