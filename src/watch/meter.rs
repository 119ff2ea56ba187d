use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::{Device, Nvml};

use super::recording::{Gpu, Reading, Slowdown};
use crate::device::{VIRTUAL_SUFFIX, board_memory, descends_from, process_bytes};
use crate::units::Bytes;

/// Between two questions about PCIe's traffic: NVML counts for 20 ms to answer each.
const TRAFFIC_INTERVAL: Duration = Duration::from_secs(5);

/// Reads what NVML tells of some GPUs while a program runs.
pub struct Meter {
    nvml: Arc<Nvml>,
    gpus: Vec<Gpu>,
    /// Processes that NVML has named: whether they are the program's. One that is remains so, also
    /// when its parents have ended.
    known: BTreeMap<u32, bool>,
    traffic: Option<Instant>,
}

impl Meter {
    /// Looks at the GPUs with these UUIDs, before the program is started.
    pub fn new(nvml: Arc<Nvml>, uuids: &[String]) -> Self {
        let device = |uuid: &String| describe(&nvml.device_by_uuid(uuid.as_str()).ok()?);
        let gpus = uuids.iter().filter_map(device).collect();
        Self { nvml, gpus, known: BTreeMap::new(), traffic: None }
    }

    /// Looks at all GPUs, before the program is started.
    pub fn of_all(nvml: Arc<Nvml>) -> Self {
        let uuid = |index| nvml.device_by_index(index).ok()?.uuid().ok();
        let uuids: Vec<_> = (0..nvml.device_count().unwrap_or(0)).filter_map(uuid).collect();
        Self::new(nvml, &uuids)
    }

    /// What is watched.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Reads now; one reading for each GPU that answers. `program` is the id of the process that was
    /// started.
    pub fn read(&mut self, program: Option<u32>) -> Vec<Reading> {
        let asks_traffic = self.traffic.is_none_or(|then| then.elapsed() >= TRAFFIC_INTERVAL);
        if asks_traffic {
            self.traffic = Some(Instant::now());
        }
        let Self { nvml, gpus, known, .. } = self;
        let mut is_own = |pid: u32| {
            *known.entry(pid).or_insert_with(|| program.is_some_and(|it| descends_from(pid, it)))
        };
        let mut reading = |gpu: &Gpu| {
            let device = nvml.device_by_index(gpu.index).ok()?;
            let used = board_memory(&device).ok()?.held();
            let process = process_bytes(&device, &mut is_own).map(Bytes);
            let mut reading = Reading { gpu: gpu.index, used, process, ..Reading::default() };
            if !gpu.virtual_gpu {
                take_in_state(&mut reading, &device);
                if asks_traffic {
                    reading.received = traffic(&device, PcieUtilCounter::Receive);
                    reading.sent = traffic(&device, PcieUtilCounter::Send);
                }
            }
            Some(reading)
        };
        gpus.iter().filter_map(&mut reading).collect()
    }
}

fn describe(device: &Device<'_>) -> Option<Gpu> {
    let name = device.name().ok()?;
    let memory = board_memory(device).ok()?;
    let virtual_gpu = name.ends_with(VIRTUAL_SUFFIX);
    Some(Gpu {
        index: device.index().ok()?,
        laptop: name.contains("Laptop") || name.contains("Max-Q") || has_battery(),
        virtual_gpu,
        total: memory.total,
        held: memory.held(),
        highest_clock: device.max_clock_info(Clock::SM).ok(),
        power_limit: device.enforced_power_limit().ok(),
        name,
    })
}

/// Whether this machine runs on a battery when it is unplugged. Batteries of mice and the like say
/// whose they are (`scope` of `power_supply`, Linux's `Documentation/ABI/testing/sysfs-class-power`).
fn has_battery() -> bool {
    let supplies = fs::read_dir("/sys/class/power_supply").into_iter().flatten().flatten();
    let says = |folder: &Path, file: &str, what: &str| {
        fs::read_to_string(folder.join(file)).is_ok_and(|text| text.trim() == what)
    };
    let mut folders = supplies.map(|it| it.path());
    folders.any(|it| says(&it, "type", "Battery") && !says(&it, "scope", "Device"))
}

fn take_in_state(reading: &mut Reading, device: &Device<'_>) {
    reading.utilisation = device.utilization_rates().ok().map(|rates| rates.gpu);
    reading.clock = device.clock_info(Clock::SM).ok();
    reading.power = device.power_usage().ok();
    reading.temperature = device.temperature(TemperatureSensor::Gpu).ok();
    reading.slowdowns = device.current_throttle_reasons().map_or_else(|_| Vec::new(), slowdowns);
}

/// In bytes per second; NVML says KB.
fn traffic(device: &Device<'_>, which: PcieUtilCounter) -> Option<u64> {
    device.pcie_throughput(which).ok().map(|kilobytes| u64::from(kilobytes) * 1000)
}

fn slowdowns(reasons: ThrottleReasons) -> Vec<Slowdown> {
    let known = [
        (ThrottleReasons::SW_POWER_CAP, Slowdown::PowerCap),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, Slowdown::Heat),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, Slowdown::HardwareHeat),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, Slowdown::PowerBrake),
        (ThrottleReasons::HW_SLOWDOWN, Slowdown::Hardware),
    ];
    let given = known.into_iter().filter(|(reason, _)| reasons.contains(*reason));
    given.map(|(_, slowdown)| slowdown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_concern_who_trains_are_told_and_others_are_not() {
        let reasons = ThrottleReasons::GPU_IDLE
            | ThrottleReasons::SW_POWER_CAP
            | ThrottleReasons::HW_THERMAL_SLOWDOWN
            | ThrottleReasons::HW_SLOWDOWN;
        let told = [Slowdown::PowerCap, Slowdown::HardwareHeat, Slowdown::Hardware];
        assert_eq!(slowdowns(reasons), told);
        assert_eq!(slowdowns(ThrottleReasons::GPU_IDLE | ThrottleReasons::SYNC_BOOST), []);
    }
}
