//! The virtual NVML as nvml-wrapper reads it, in a process that never touches CUDA and knows nothing
//! but the path of the library in the virtual GPU's folder.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use serde_json::json;
use vramfit_vgpu_schema::folder;

const MIB: u64 = 1 << 20;

/// The test's own folder is `deps` in the folder that holds the library.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().parent().unwrap().join("libvramfit_vgpu.so");
    assert!(library.exists(), "{} is not built; run `cargo build`", library.display());
    library
}

fn describe(folder: &Path) {
    let device = |uuid: &str| {
        json!({
            "name": "NVIDIA GeForce RTX 3050 Laptop GPU (virtual)", "uuid": uuid,
            "total_memory_bytes": 4096 * MIB, "usable_memory_bytes": 3762 * MIB,
            "held_memory_bytes": 600 * MIB, "context_bytes": 98 * MIB,
            "compute_capability": [8, 6], "multiprocessors": 16, "l2_cache_bytes": 2 * MIB,
            "shared_memory_per_multiprocessor": 102_400, "shared_memory_per_block_optin": 101_376,
            "threads_per_multiprocessor": 1536, "blocks_per_multiprocessor": 16,
            "registers_per_multiprocessor": 65_536, "clock_khz": 1_500_000,
            "memory_clock_khz": 6_000_000, "memory_bus_bits": 128, "pci_device_id": 0x25a2_10de,
            "power_limit_milliwatts": 80_000, "speed": vramfit_vgpu_cost::Speed::small(),
        })
    };
    let description = json!({
        "schema": vramfit_vgpu_schema::SCHEMA, "driver_version": "580.65.06",
        "cuda_version": 13000, "devices": [device("GPU-aa"), device("GPU-bb")],
    });
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(folder::DESCRIPTION), description.to_string()).unwrap();
    for link in folder::LIBRARIES {
        std::os::unix::fs::symlink(library(), folder.join(link)).unwrap();
    }
}

/// One test, since NVML is one to a process.
#[test]
fn nvml_wrapper_reads_the_described_machine() {
    let name = format!("vramfit-vgpu-nvml-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    describe(&folder);
    let path = folder.join("libnvidia-ml.so.1");
    let nvml = Nvml::builder().lib_path(path.as_os_str()).init().unwrap();

    assert_eq!(nvml.device_count().unwrap(), 2);
    assert_eq!(nvml.sys_driver_version().unwrap(), "580.65.06");
    assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 13000);
    let device = nvml.device_by_uuid("GPU-bb").unwrap();
    assert_eq!(device.index().unwrap(), 1);
    assert_eq!(device.name().unwrap(), "NVIDIA GeForce RTX 3050 Laptop GPU (virtual)");
    assert_eq!(device.uuid().unwrap(), "GPU-bb");
    let pci = device.pci_info().unwrap();
    assert_eq!((pci.bus, pci.pci_device_id), (2, 0x25a2_10de));
    assert_eq!(nvml.device_by_pci_bus_id(pci.bus_id).unwrap().index().unwrap(), 1);
    let capability = device.cuda_compute_capability().unwrap();
    assert_eq!((capability.major, capability.minor), (8, 6));
    assert_eq!(device.clock_info(Clock::SM).unwrap(), 1500);
    assert_eq!(device.enforced_power_limit().unwrap(), 80_000);
    assert_eq!(device.utilization_rates().unwrap().gpu, 0);

    let memory = device.memory_info().unwrap();
    assert_eq!(memory.total, 4096 * MIB);
    assert_eq!(memory.reserved, (4096 - 3762) * MIB);
    assert_eq!(memory.used, 600 * MIB);
    assert_eq!(memory.total, memory.reserved + memory.used + memory.free);
    assert!(device.running_compute_processes().unwrap().is_empty());
    assert!(device.running_graphics_processes().unwrap().is_empty());

    let unknown = device.temperature(TemperatureSensor::Gpu);
    assert!(matches!(unknown, Err(NvmlError::NotSupported)), "{unknown:?}");
    assert!(matches!(nvml.device_by_uuid("GPU-cc"), Err(NvmlError::NotFound)));
    assert!(matches!(nvml.device_by_index(2), Err(NvmlError::InvalidArg)));

    // A sampler needs 200 readings a second; one that keeps a core busy is no sampler.
    let start = Instant::now();
    for _ in 0..1000 {
        device.memory_info().unwrap();
        device.running_compute_processes().unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?} for 1000", start.elapsed());
    nvml.shutdown().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
