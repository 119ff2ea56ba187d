//! A virtual GPU in a temporary folder, and running a Python program on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use vramfit_vgpu_cost::Speed;
use vramfit_vgpu_schema::{Description, Device, Report, SCHEMA, folder};

use super::environments::{self, Environment};

pub(crate) const MIB: u64 = 1 << 20;

/// A small laptop card; tests change what they need.
pub(crate) fn laptop() -> Device {
    Device {
        name: "NVIDIA GeForce RTX 3050 Laptop GPU (virtual)".to_owned(),
        uuid: "GPU-0a0b0c0d-0001-0002-0003-000000000001".to_owned(),
        total_memory_bytes: 4096 * MIB,
        usable_memory_bytes: 3762 * MIB,
        held_memory_bytes: 0,
        context_bytes: 98 * MIB,
        compute_capability: (8, 6),
        multiprocessors: 16,
        l2_cache_bytes: 2 << 20,
        shared_memory_per_multiprocessor: 102_400,
        shared_memory_per_block_optin: 101_376,
        threads_per_multiprocessor: 1536,
        blocks_per_multiprocessor: 16,
        registers_per_multiprocessor: 65_536,
        clock_khz: 1_500_000,
        memory_clock_khz: 6_000_000,
        memory_bus_bits: 128,
        pci_device_id: 0x25a2_10de,
        power_limit_milliwatts: 80_000,
        speed: Speed::small(),
    }
}

/// A virtual GPU's folder, gone when dropped.
pub(crate) struct Machine {
    folder: PathBuf,
}

impl Machine {
    pub(crate) fn new(devices: Vec<Device>) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vramfit-vgpu-test-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let description = Description {
            schema: SCHEMA,
            driver_version: "580.65.06".to_owned(),
            cuda_version: 13000,
            devices,
        };
        let text = serde_json::to_string(&description).unwrap();
        std::fs::write(folder.join(folder::DESCRIPTION), text).unwrap();
        for link in folder::LIBRARIES {
            std::os::unix::fs::symlink(library(), folder.join(link)).unwrap();
        }
        Self { folder }
    }

    /// The program `programs/NAME.py`, ready to start on this machine.
    pub(crate) fn program(&self, name: &str) -> Command {
        self.program_in(&environments::main(), name)
    }

    /// The same, with the PyTorch of one environment.
    pub(crate) fn program_in(&self, environment: &Environment, name: &str) -> Command {
        let mut command = self.python(environment);
        command.arg(path(name));
        command
    }

    /// The same, once for each of `ranks` ranks, started by `torchrun`.
    pub(crate) fn ranks_in(&self, environment: &Environment, ranks: usize, name: &str) -> Command {
        let mut command = self.python(environment);
        command.args(["-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]);
        // Two cores are shared by all: more threads only disturb each other.
        command.arg(ranks.to_string()).arg(path(name)).env("OMP_NUM_THREADS", "1");
        command
    }

    fn python(&self, environment: &Environment) -> Command {
        let mut command = Command::new(&environment.python);
        command
            .env(folder::VARIABLE, &self.folder)
            .env("LD_PRELOAD", library())
            .env("LD_LIBRARY_PATH", &self.folder)
            // Kernels for a card that is not there stay out of the user's caches.
            .env("TRITON_LIBCUDA_PATH", &self.folder)
            .env("TRITON_CACHE_DIR", self.folder.join("triton"))
            .env("TORCHINDUCTOR_CACHE_DIR", self.folder.join("inductor"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove(folder::CUDNN_VARIABLE)
            .env_remove("CUDA_VISIBLE_DEVICES")
            .env_remove("PYTORCH_CUDA_ALLOC_CONF")
            .env_remove("PYTORCH_ALLOC_CONF")
            .stdin(Stdio::null());
        command
    }

    /// Runs a program to its end; its standard output and report. A failure of the program fails the
    /// test with what it said.
    #[track_caller]
    pub(crate) fn run(&self, name: &str, arguments: &[&str]) -> (String, Report) {
        let child = self
            .program(name)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.finish(name, child)
    }

    /// The machine's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits for a program that was started by hand.
    #[track_caller]
    pub(crate) fn finish(&self, name: &str, child: Child) -> (String, Report) {
        let pid = child.id();
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{name} ended with {status}:\n{stderr}");
        (String::from_utf8(stdout).unwrap(), self.report(pid))
    }

    /// What process `pid` did, which must be free of internal errors.
    #[track_caller]
    pub(crate) fn report(&self, pid: u32) -> Report {
        let text = std::fs::read_to_string(self.folder.join(folder::report(pid))).unwrap();
        let report: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(report.internal_errors, Vec::<String>::new(), "{}", report.command);
        report
    }
}

fn path(program: &str) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs");
    programs.join(program).with_extension("py")
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The library that cargo built: the test's own folder is `deps` in the folder that holds it.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().parent().unwrap().join("libvramfit_vgpu.so");
    assert!(library.exists(), "{} is not built; run `cargo build --release`", library.display());
    library
}

/// Asks of a program that prints `name`, `measured` and `expected`, separated by tabs, that they agree
/// in each of its at least `least` lines.
#[track_caller]
pub(crate) fn assert_as_expected(output: &str, least: usize) {
    let wrong: Vec<&str> = output
        .lines()
        .filter(|line| {
            let mut fields = line.split('\t').skip(1);
            fields.next() != fields.next()
        })
        .collect();
    assert!(wrong.is_empty(), "name, measured, expected:\n{}", wrong.join("\n"));
    assert!(output.lines().count() >= least, "only {} checks ran", output.lines().count());
}

/// Runs a part of a program on a [`laptop`] under a setting of PyTorch's allocator, and compares what it
/// measures, as [`assert_as_expected`] does.
#[track_caller]
pub(crate) fn checked(
    environment: &Environment,
    program: &str,
    setting: &str,
    part: &str,
    least: usize,
) -> Report {
    let machine = Machine::new(vec![laptop()]);
    let child = machine
        .program_in(environment, program)
        .arg(part)
        .env("PYTORCH_CUDA_ALLOC_CONF", setting)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (output, report) = machine.finish(&format!("{}: {part}", environment.name), child);
    assert_as_expected(&output, least);
    assert_eq!(report.not_implemented, Vec::<String>::new());
    report
}
