//! Machines laid out as files.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::device::Platform;

/// The files of a machine.
struct Files(TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn link(self, target: &str, path: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    /// A mobile RTX 3050 on the bus, in that state of power.
    fn card(state: &str) -> Self {
        let folder = "sys/bus/pci/devices/0000:01:00.0";
        let audio = "sys/bus/pci/devices/0000:01:00.1";
        let file = |folder: &str, name: &str| format!("{folder}/{name}");
        let files = [
            (file(folder, "vendor"), "0x10de\n"),
            (file(folder, "device"), "0x25a2\n"),
            (file(folder, "class"), "0x030000\n"),
            (file(folder, "power/runtime_status"), state),
            (file(audio, "vendor"), "0x10de\n"),
            (file(audio, "device"), "0x2291\n"),
            (file(audio, "class"), "0x040300\n"),
        ];
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        Self::new(&files).link("../../../bus/pci/drivers/nvidia", &file(folder, "driver"))
    }

    fn reach<'a>(
        &'a self,
        catalog: &'a Catalog,
        nvml: &'a dyn Fn() -> Result<Nvml, NvmlError>,
        wakes: &'a dyn Fn(&[String]) -> bool,
    ) -> Reach<'a> {
        let python = Path::new("/nonexistent/python");
        let root = self.0.path();
        Reach {
            root,
            variable: &|_| None,
            nvml,
            wakes,
            python,
            catalog,
            listens: &Interrupt::default,
        }
    }
}

/// What is seen with NVML absent.
fn seen(
    files: &Files,
    variable: &(dyn Fn(&str) -> Option<String> + Sync),
) -> (System, Driver, Vec<GpuFacts>) {
    let catalog = Catalog::built_in();
    let absent = || Err(NvmlError::LibraryNotFound);
    let reach = files.reach(&catalog, &absent, &|_| false);
    surroundings(&Reach { variable, ..reach })
}

#[test]
fn a_sleeping_gpu_is_known_by_its_place_and_nvml_is_not_opened() {
    let files = Files::card("suspended\n");
    let catalog = Catalog::built_in();
    let (opened, named) = (Cell::new(0), Cell::new(String::new()));
    let nvml = || {
        opened.set(opened.get() + 1);
        Err(NvmlError::DriverNotLoaded)
    };
    let leaves = |names: &[String]| {
        named.set(names.join(", "));
        false
    };
    let (_, driver, gpus) = surroundings(&files.reach(&catalog, &nvml, &leaves));
    assert_eq!((opened.get(), driver.nvml), (0, Access::NotAsked));
    assert_eq!(named.take(), "GA107M [GeForce RTX 3050 Mobile]");
    let [gpu] = gpus.as_slice() else { panic!("{gpus:?}") };
    assert!(gpu.asleep);
    assert_eq!(gpu.profiles, ["rtx-3050-laptop-4gb"]);
    assert_eq!(gpu.kernel_driver.as_deref(), Some("nvidia"));
    let (_, driver, _) = surroundings(&files.reach(&catalog, &nvml, &|_| true));
    assert_eq!(opened.get(), 1, "it may be woken");
    assert!(matches!(driver.nvml, Access::Fails { fault: NvmlFault::NotLoaded, .. }));
}

#[test]
fn a_card_without_a_driver_is_powered_down_by_the_bus_and_not_asleep() {
    let files = Files::new(&[
        ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"),
        ("sys/bus/pci/devices/0000:01:00.0/device", "0x25a2\n"),
        ("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"),
        ("sys/bus/pci/devices/0000:01:00.0/power/runtime_status", "suspended\n"),
    ]);
    let (_, driver, gpus) = seen(&files, &|_| None);
    assert!(matches!(driver.nvml, Access::Fails { fault: NvmlFault::NoLibrary, .. }));
    assert!(!gpus[0].asleep);
}

#[test]
fn a_gpu_that_is_awake_is_asked_at_once() {
    let files = Files::card("active\n");
    let catalog = Catalog::built_in();
    let nvml = || Err(NvmlError::LibRmVersionMismatch);
    let nobody = |_: &[String]| panic!("nothing sleeps");
    let (_, driver, gpus) = surroundings(&files.reach(&catalog, &nvml, &nobody));
    assert!(matches!(driver.nvml, Access::Fails { fault: NvmlFault::VersionMismatch, .. }));
    assert_eq!(gpus.len(), 1, "the bus knows it");
}

#[test]
fn versions_of_module_and_library_are_read_from_files() {
    let version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n\
                   GCC version:  gcc version 13.3.0\n";
    let model = "Model: \t\t NVIDIA GeForce RTX 3050 Laptop GPU\nIRQ:   \t\t 180\n";
    let files = Files::new(&[
        ("proc/driver/nvidia/version", version),
        ("proc/driver/nvidia/gpus/0000:01:00.0/information", model),
        ("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"),
        ("sys/bus/pci/devices/0000:01:00.0/device", "0x25a2\n"),
        ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"),
    ])
    .link("libnvidia-ml.so.570.124.06", "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
    let (_, driver, gpus) = seen(&files, &|_| None);
    assert_eq!(driver.module.as_deref(), Some("570.86.15"));
    assert_eq!(driver.library.as_deref(), Some("570.124.06"));
    let product = gpus[0].product.as_deref();
    assert_eq!(product, Some("NVIDIA GeForce RTX 3050 Laptop GPU"), "the driver's name");
    assert_eq!(gpus[0].profiles, ["rtx-3050-laptop-4gb"]);
}

#[test]
fn wsl_containers_boards_and_batteries_are_recognized() {
    let wsl = Files::new(&[
        ("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n"),
        ("dev/dxg", ""),
        ("usr/lib/x86_64-linux-gnu/libcuda.so.1", ""),
    ]);
    let system = seen(&wsl, &|_| None).0;
    assert_eq!((system.platform, system.dxg), (Platform::Wsl, true));
    assert!(system.linux_driver_in_wsl);
    let docker = Files::new(&[(".dockerenv", ""), ("proc/sys/kernel/osrelease", "6.8.0\n")]);
    let system = seen(&docker, &|_| None).0;
    assert_eq!(system.container.as_deref(), Some("docker"));
    assert!(!system.linux_driver_in_wsl);
    let set = |name: &str| match name {
        "container" => Some("lxc".to_owned()),
        "CUDA_VISIBLE_DEVICES" => Some("1".to_owned()),
        _ => None,
    };
    let system = seen(&docker, &set).0;
    assert_eq!(system.container.as_deref(), Some("lxc"));
    assert_eq!(system.visible_devices.as_deref(), Some("1"));
    let jetson = Files::new(&[("proc/device-tree/model", "NVIDIA Jetson Orin Nano\0")]);
    assert_eq!(seen(&jetson, &|_| None).0.board.as_deref(), Some("NVIDIA Jetson Orin Nano"));
    let laptop = Files::new(&[
        ("sys/class/power_supply/AC/type", "Mains\n"),
        ("sys/class/power_supply/AC/online", "0\n"),
        ("sys/class/power_supply/BAT0/type", "Battery\n"),
    ]);
    assert_eq!(seen(&laptop, &|_| None).0.on_battery, Some(true));
    assert_eq!(seen(&docker, &|_| None).0.on_battery, None);
}

#[test]
fn the_bus_adds_what_nvml_does_not_know() {
    let on_bus = GpuFacts {
        pci: Some("0000:02:00.0".to_owned()),
        product: Some("by PCI".to_owned()),
        kernel_driver: Some("nvidia".to_owned()),
        ..GpuFacts::unknown()
    };
    let other = GpuFacts { pci: Some("0000:03:00.0".to_owned()), ..GpuFacts::unknown() };
    let known = GpuFacts {
        index: Some(0),
        pci: on_bus.pci.clone(),
        product: Some("by NVML".to_owned()),
        ..GpuFacts::unknown()
    };
    let gpus = merged(vec![known], vec![on_bus, other.clone()]);
    assert_eq!(gpus.len(), 2);
    assert_eq!(gpus[0].product.as_deref(), Some("by NVML"));
    assert_eq!(gpus[0].kernel_driver.as_deref(), Some("nvidia"));
    assert_eq!(gpus[1], other);
}
