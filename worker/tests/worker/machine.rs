//! A virtual GPU in a temporary folder.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use vramfit::units::Bytes;
use vramfit_vgpu_cost::Speed;
use vramfit_vgpu_schema::{Description, Device, SCHEMA, folder};

/// A virtual GPU; its folder goes when it is dropped.
pub(crate) struct Machine {
    folder: TempDir,
}

impl Machine {
    /// A card of compute capability 8.6 with so much memory for CUDA.
    pub(crate) fn new(usable: Bytes) -> Self {
        let device = Device {
            name: "NVIDIA GeForce RTX 3060 (virtual)".to_owned(),
            uuid: "GPU-0a0b0c0d-0001-0002-0003-000000000007".to_owned(),
            total_memory_bytes: (usable + Bytes::mib(300)).get(),
            usable_memory_bytes: usable.get(),
            held_memory_bytes: 0,
            context_bytes: Bytes::mib(110).get(),
            compute_capability: (8, 6),
            multiprocessors: 28,
            l2_cache_bytes: 3 << 20,
            shared_memory_per_multiprocessor: 102_400,
            shared_memory_per_block_optin: 101_376,
            threads_per_multiprocessor: 1536,
            blocks_per_multiprocessor: 16,
            registers_per_multiprocessor: 65_536,
            clock_khz: 1_777_000,
            memory_clock_khz: 7_501_000,
            memory_bus_bits: 192,
            pci_device_id: 0x2504_10de,
            power_limit_milliwatts: 170_000,
            speed: Speed::small(),
        };
        let description = Description {
            schema: SCHEMA,
            driver_version: "580.65.06".to_owned(),
            cuda_version: 13000,
            devices: vec![device],
        };
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        let text = serde_json::to_string(&description).unwrap();
        std::fs::write(machine.folder.path().join(folder::DESCRIPTION), text).unwrap();
        for link in folder::LIBRARIES {
            symlink(library(), machine.folder.path().join(link)).unwrap();
        }
        machine
    }

    /// `command`, to run on this machine.
    pub(crate) fn command(&self, mut command: Command) -> Command {
        command
            .env(folder::VARIABLE, self.folder.path())
            .env("LD_PRELOAD", library())
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env_remove("CUDA_VISIBLE_DEVICES")
            .env_remove("PYTORCH_CUDA_ALLOC_CONF")
            .env_remove("PYTORCH_ALLOC_CONF");
        command
    }
}

/// The library that cargo built: the test's own folder is `deps` in the folder that holds it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().parent().unwrap().join("libvramfit_vgpu.so");
    assert!(library.exists(), "{} is not built; run `make build`", library.display());
    library
}
