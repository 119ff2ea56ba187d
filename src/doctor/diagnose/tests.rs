//! Each fault as a machine written down.

use super::*;
use crate::device::{NvmlFault, Platform};
use crate::doctor::machine::*;
use crate::profile::gpu::ComputeCapability;
use crate::units::Bytes;

/// A laptop on which all is well.
pub(crate) fn laptop() -> Machine {
    Machine {
        system: System {
            platform: Platform::Linux,
            kernel: "6.12.9".to_owned(),
            container: None,
            board: None,
            device_files: true,
            dxg: false,
            linux_driver_in_wsl: false,
            on_battery: Some(false),
            visible_devices: None,
            mps: false,
            mps_memory_limit: None,
        },
        driver: Driver {
            nvml: Access::Answers,
            version: Some("580.65.06".to_owned()),
            cuda: Some("13.0".to_owned()),
            module: Some("580.65.06".to_owned()),
            library: Some("580.65.06".to_owned()),
        },
        gpus: vec![card(0)],
        python: Python {
            path: "/opt/venv/bin/python".to_owned(),
            version: Some("3.12.8".to_owned()),
            torch: Some(torch()),
            failure: None,
        },
        virtual_gpus: VirtualGpus {
            worker: Some(Worker {
                torch: "2.11.0".to_owned(),
                cuda: "13.0".to_owned(),
                cudnn: "9.19.0".to_owned(),
            }),
            ..VirtualGpus::default()
        },
    }
}

fn card(index: u32) -> GpuFacts {
    GpuFacts {
        index: Some(index),
        pci: Some(format!("0000:0{}:00.0", index + 1)),
        product: Some("NVIDIA GeForce RTX 3050 Laptop GPU".to_owned()),
        uuid: Some(format!("GPU-{index}")),
        profiles: vec!["rtx-3050-laptop-4gb".to_owned()],
        kernel_driver: Some("nvidia".to_owned()),
        access: Access::Answers,
        compute_capability: Some(ComputeCapability { major: 8, minor: 6 }),
        memory: Some(Memory {
            total: Bytes::mib(4096),
            reserved: Bytes::mib(326),
            held: Bytes::mib(12),
            free: Bytes::mib(3758),
        }),
        processes: Some(vec![process(1200, "Xorg", 12, false)]),
        display: Display { attached: Some(false), active: Some(false) },
        running: Running {
            clock: Some(210),
            highest_clock: Some(2100),
            performance_state: Some(8),
            temperature: Some(47),
            slowdown_temperature: Some(102),
            power: Some(8_000),
            power_limit: Some(80_000),
            default_power_limit: Some(80_000),
            slowed_by: Some(vec![Slowdown::Idle]),
            on_battery: Some(false),
            utilization: Some(0),
        },
        link: Link {
            generation: Some(1),
            highest_generation: Some(4),
            width: Some(8),
            highest_width: Some(8),
        },
        modes: Modes {
            ecc: None,
            uncorrected_errors: None,
            mig: None,
            persistence: Some(false),
            compute: Some(ComputeMode::Default),
        },
        ..GpuFacts::unknown()
    }
}

fn torch() -> Torch {
    let architectures = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"];
    Torch {
        version: "2.11.0+cu130".to_owned(),
        cuda: Some("13.0".to_owned()),
        cudnn: Some("9.19.0".to_owned()),
        architectures: architectures.into_iter().map(str::to_owned).collect(),
        flash_attention: Some(true),
        opened: Some(Opened {
            devices: vec![OpenedDevice {
                name: "NVIDIA GeForce RTX 3050 Laptop GPU".to_owned(),
                total: Bytes::mib(3770),
            }],
            ..Opened::default()
        }),
        ..Torch::default()
    }
}

fn process(pid: u32, name: &str, mib: u64, computes: bool) -> Process {
    Process { pid, name: Some(name.to_owned()), held: Some(Bytes::mib(mib)), computes }
}

fn fails(fault: NvmlFault) -> Access {
    Access::Fails { fault, reason: "a reason".to_owned(), remedy: Some("a remedy".to_owned()) }
}

/// A laptop whose driver does not answer, so that the card is known by the bus alone.
fn driverless(fault: NvmlFault) -> Machine {
    let mut machine = laptop();
    machine.driver =
        Driver { nvml: fails(fault), version: None, cuda: None, module: None, library: None };
    machine.gpus = vec![on_bus()];
    machine.python.torch = Some(Torch { opened: None, ..torch() });
    machine
}

fn on_bus() -> GpuFacts {
    GpuFacts {
        pci: Some("0000:01:00.0".to_owned()),
        product: Some("GA107M [GeForce RTX 3050 Mobile]".to_owned()),
        ..GpuFacts::unknown()
    }
}

/// A machine without an NVIDIA GPU.
pub(crate) fn bare() -> Machine {
    let mut machine = driverless(NvmlFault::NoLibrary);
    machine.gpus.clear();
    machine.system.device_files = false;
    machine
}

#[track_caller]
fn only(machine: &Machine) -> Problem {
    let mut found = diagnose(machine, false);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// The one problem has this code and weight, and its words hold these.
#[track_caller]
fn expect(machine: &Machine, code: Code, severity: Severity, words: &[&str]) {
    let problem = only(machine);
    assert_eq!((problem.code, problem.severity), (code, severity), "{problem:#?}");
    let text = format!("{} {}", problem.message, problem.remedy.unwrap_or_default());
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}

#[test]
fn nothing_is_said_of_a_machine_on_which_all_is_well() {
    assert_eq!(diagnose(&laptop(), true), []);
    let mut busy = laptop();
    busy.gpus[0].running.slowed_by = Some(Vec::new());
    assert_eq!(diagnose(&busy, true), [], "at its full clock");
}

#[test]
fn a_machine_without_a_gpu_can_plan_and_is_no_failure_unless_a_gpu_is_needed() {
    let words = ["no NVIDIA driver", "virtual GPUs can be used", "vramfit gpus"];
    expect(&bare(), Code::NoGpu, Severity::Note, &words);
    assert_eq!(diagnose(&bare(), true)[0].severity, Severity::Prevents);
    let mut nothing = bare();
    nothing.virtual_gpus.failure = Some("no library".to_owned());
    let found = diagnose(&nothing, false);
    assert_eq!((found[0].code, found[0].severity), (Code::NoVirtualGpus, Severity::Prevents));
    assert!(!found[1].message.contains("can be used"), "{found:?}");
}

#[test]
fn a_card_without_a_driver_is_told_from_one_with_the_wrong_one() {
    let prevents = Severity::Prevents;
    let missing = driverless(NvmlFault::NoLibrary);
    expect(&missing, Code::DriverMissing, prevents, &["RTX 3050", "install NVIDIA's driver"]);
    for (kernel_driver, word) in [("nouveau", "nouveau"), ("vfio-pci", "virtual machines")] {
        let mut machine = driverless(NvmlFault::NoLibrary);
        machine.gpus[0].kernel_driver = Some(kernel_driver.to_owned());
        expect(&machine, Code::DriverMissing, prevents, &[word]);
    }
    let not_loaded = driverless(NvmlFault::NotLoaded);
    expect(&not_loaded, Code::DriverNotLoaded, prevents, &["modprobe nvidia"]);
}

#[test]
fn an_update_without_a_reboot_names_both_versions() {
    let mut machine = driverless(NvmlFault::VersionMismatch);
    machine.driver.module = Some("570.86.15".to_owned());
    machine.driver.library = Some("570.124.06".to_owned());
    let words = ["570.86.15", "570.124.06", "reboot"];
    let found = diagnose(&machine, false);
    // Driver 570 would also be too old for CUDA 13.
    let problem = found.iter().find(|it| it.code == Code::VersionMismatch).unwrap();
    assert_eq!(problem.severity, Severity::Prevents);
    let text = format!("{} {:?}", problem.message, problem.remedy);
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn a_container_is_told_how_it_is_given_the_gpu() {
    for (kind, word) in
        [("docker", "--gpus all"), ("podman", "nvidia.com/gpu=all"), ("apptainer", "--nv")]
    {
        let mut machine = driverless(NvmlFault::NoLibrary);
        machine.system.container = Some(kind.to_owned());
        machine.system.device_files = false;
        expect(&machine, Code::ContainerWithoutGpu, Severity::Prevents, &[kind, word]);
    }
    let mut lost = driverless(NvmlFault::Unknown);
    lost.system.container = Some("docker".to_owned());
    let words = ["lost its access", "daemon-reload", "restart"];
    expect(&lost, Code::ContainerWithoutGpu, Severity::Prevents, &words);
    let mut without = bare();
    without.system.container = Some("docker".to_owned());
    expect(&without, Code::NoGpu, Severity::Note, &["virtual GPUs can be used"]);
}

#[test]
fn a_sleeping_gpu_is_left_asleep_and_that_is_no_problem() {
    let mut machine = driverless(NvmlFault::NoLibrary);
    machine.driver.nvml = Access::NotAsked;
    machine.gpus[0].asleep = true;
    expect(&machine, Code::Asleep, Severity::Note, &["RTX 3050", "left so", "--wake"]);
}

#[test]
fn wsl_says_where_the_spill_policy_is_set_and_which_driver_counts() {
    let mut wsl = laptop();
    wsl.system.platform = Platform::Wsl;
    expect(&wsl, Code::Spill, Severity::Note, &["cannot be read", "Prefer No Sysmem Fallback"]);
    wsl.system.linux_driver_in_wsl = true;
    let found = diagnose(&wsl, false);
    assert_eq!((found[0].code, found[0].severity), (Code::LinuxDriverInWsl, Severity::Prevents));
    let mut without = bare();
    without.system.platform = Platform::Wsl;
    expect(&without, Code::NoGpu, Severity::Note, &["wsl --update"]);
}

#[test]
fn a_hot_laptop_is_told_so_with_its_clocks() {
    for reason in [Slowdown::SoftwareThermal, Slowdown::HardwareThermal, Slowdown::Hardware] {
        let mut machine = laptop();
        let running = &mut machine.gpus[0].running;
        running.slowed_by = Some(vec![Slowdown::PowerCap, reason]);
        (running.clock, running.temperature) = (Some(840), Some(87));
        let words = ["840 of 2100 MHz", "87 °C", "let air in"];
        expect(&machine, Code::SlowedDown, Severity::Harms, &words);
    }
    let mut machine = laptop();
    machine.gpus[0].running.slowed_by = Some(vec![Slowdown::PowerCap]);
    expect(&machine, Code::SlowedDown, Severity::Note, &["usual under load"]);
    machine.gpus[0].running.slowed_by = Some(vec![Slowdown::PowerBrake]);
    expect(&machine, Code::SlowedDown, Severity::Harms, &["power supply"]);
}

#[test]
fn a_laptop_on_its_battery_is_told_to_plug_in() {
    let mut machine = laptop();
    machine.system.on_battery = Some(true);
    expect(&machine, Code::OnBattery, Severity::Harms, &["plug it in"]);
    let mut without = bare();
    without.system.on_battery = Some(true);
    expect(&without, Code::NoGpu, Severity::Note, &[]);
}

#[test]
fn memory_that_others_hold_is_named_with_its_holders() {
    let held = |mib: u64, processes: Vec<Process>| {
        let mut machine = laptop();
        let memory = Memory {
            held: Bytes::mib(mib),
            free: Bytes::mib(3770 - mib),
            ..machine.gpus[0].memory.unwrap()
        };
        machine.gpus[0].memory = Some(memory);
        machine.gpus[0].processes = Some(processes);
        machine
    };
    let training = vec![process(4242, "python", 1900, true), process(1200, "Xorg", 12, false)];
    let words = ["1.87 GiB", "python (4242, 1.86 GiB)", "kill 4242"];
    let machine = held(1912, training.clone());
    expect(&machine, Code::MemoryHeld, Severity::Harms, &words);
    let desktop = vec![process(1200, "gnome-shell", 700, false)];
    let machine = held(700, desktop);
    expect(&machine, Code::MemoryHeld, Severity::Note, &["gnome-shell", "desktop"]);
    let mut two = held(1912, training);
    two.gpus.push(card(1));
    expect(&two, Code::MemoryHeld, Severity::Note, &["GPU 1 is free", "CUDA_VISIBLE_DEVICES=1"]);
    let mut unnamed = held(1912, Vec::new());
    unnamed.gpus[0].processes = None;
    expect(&unnamed, Code::MemoryHeld, Severity::Note, &["not told here"]);
    let mut foreign = held(1912, vec![Process { name: None, ..process(7, "", 1900, true) }]);
    foreign.system.container = Some("docker".to_owned());
    expect(&foreign, Code::MemoryHeld, Severity::Harms, &["not seen from here"]);
}

#[test]
fn of_several_gpus_the_broken_one_is_named() {
    let mut machine = laptop();
    machine.gpus.push(GpuFacts {
        index: Some(1),
        access: Access::Fails {
            fault: NvmlFault::Lost,
            reason: "the GPU has fallen off the bus".to_owned(),
            remedy: Some("check cables or the dock, then reboot".to_owned()),
        },
        ..GpuFacts::unknown()
    });
    expect(&machine, Code::GpuFails, Severity::Prevents, &["GPU 1", "off the bus", "dock"]);
    assert_eq!(only(&machine).gpu, Some(1));
    machine.gpus[1] = GpuFacts { kernel_driver: Some("vfio-pci".to_owned()), ..on_bus() };
    expect(&machine, Code::DriverMissing, Severity::Prevents, &["virtual machines"]);
    machine.gpus[1] = GpuFacts { kernel_driver: Some("nvidia".to_owned()), ..on_bus() };
    expect(&machine, Code::GpuFails, Severity::Prevents, &["does not know of", "dmesg"]);
}

#[test]
fn instances_modes_errors_and_lanes_are_noted() {
    let with = |change: fn(&mut GpuFacts)| {
        let mut machine = laptop();
        change(&mut machine.gpus[0]);
        machine
    };
    let mig = with(|gpu| gpu.modes.mig = Some(true));
    expect(&mig, Code::Mig, Severity::Note, &["instances", "MIG-…"]);
    let closed = with(|gpu| gpu.modes.compute = Some(ComputeMode::Prohibited));
    expect(&closed, Code::ComputeMode, Severity::Prevents, &["nvidia-smi -i 0 -c DEFAULT"]);
    let taken = with(|gpu| {
        gpu.modes.compute = Some(ComputeMode::ExclusiveProcess);
        gpu.processes = Some(vec![process(77, "python", 100, true)]);
    });
    expect(&taken, Code::ComputeMode, Severity::Prevents, &["python (77"]);
    let errors = with(|gpu| gpu.modes.uncorrected_errors = Some(3));
    expect(&errors, Code::MemoryErrors, Severity::Harms, &["3 memory errors"]);
    let narrow = with(|gpu| gpu.link.width = Some(1));
    expect(&narrow, Code::NarrowLink, Severity::Note, &["1 of 8 PCIe lanes"]);
    let limited = with(|gpu| gpu.running.power_limit = Some(35_000));
    expect(&limited, Code::PowerLimit, Severity::Note, &["35 W", "80 W"]);
    let new = with(|gpu| gpu.profiles.clear());
    expect(&new, Code::NoProfile, Severity::Note, &["docs/profiles.md"]);
}

#[test]
fn a_jetson_is_said_to_share_its_memory() {
    let mut machine = laptop();
    machine.system.board = Some("NVIDIA Jetson AGX Orin Developer Kit".to_owned());
    let unknown = GpuFacts {
        index: Some(0),
        product: Some("Orin (nvgpu)".to_owned()),
        access: Access::Answers,
        ..GpuFacts::unknown()
    };
    machine.gpus = vec![unknown];
    expect(&machine, Code::SharedMemoryBoard, Severity::Note, &["AGX Orin", "shares memory"]);
}

#[test]
fn variables_that_hide_gpus_are_named() {
    let with = |value: &str| {
        let mut machine = laptop();
        machine.system.visible_devices = Some(value.to_owned());
        machine
    };
    for value in ["", "-1"] {
        let mut machine = with(value);
        machine.python.torch.as_mut().unwrap().opened = Some(Opened {
            failure: Some("No CUDA GPUs are available".to_owned()),
            ..Opened::default()
        });
        expect(&machine, Code::VisibleDevices, Severity::Prevents, &["hides every GPU", "unset"]);
    }
    expect(&with("0"), Code::VisibleDevices, Severity::Note, &["`0`"]);
    let mut machine = laptop();
    machine.system.mps = true;
    expect(&machine, Code::Mps, Severity::Note, &["nvidia-cuda-mps-control"]);
    machine.system.mps_memory_limit = Some("0=2G".to_owned());
    expect(&machine, Code::Mps, Severity::Note, &["0=2G", "--vram"]);
}

#[test]
fn a_pytorch_that_cannot_use_the_gpu_is_a_problem_where_there_is_one() {
    let cpu = Torch { version: "2.11.0+cpu".to_owned(), ..Torch::default() };
    let mut machine = laptop();
    machine.python.torch = Some(cpu.clone());
    let words = ["CPU alone", "whl/cu130"];
    expect(&machine, Code::TorchWithoutCuda, Severity::Prevents, &words);
    let mut without = bare();
    without.python.torch = Some(cpu);
    let found = diagnose(&without, false);
    assert!(found.iter().all(|it| it.severity == Severity::Note), "{found:?}");
    let mut rocm = laptop();
    rocm.python.torch = Some(Torch { rocm: Some("6.3".to_owned()), cuda: None, ..torch() });
    expect(&rocm, Code::TorchWithoutCuda, Severity::Prevents, &["ROCm 6.3"]);
}

#[test]
fn each_way_to_have_no_pytorch_has_its_remedy() {
    let broken = PythonFailure::Broken { reason: "libcublas.so.12: not found".to_owned() };
    for (failure, code, word) in [
        (PythonFailure::Missing, Code::PythonMissing, "VRAMFIT_PYTHON"),
        (PythonFailure::NoTorch, Code::TorchMissing, "pip install torch"),
        (broken, Code::TorchBroken, "libcublas.so.12"),
        (PythonFailure::Hung { seconds: 120 }, Code::TorchBroken, "120 s"),
    ] {
        let mut machine = laptop();
        (machine.python.torch, machine.python.failure) = (None, Some(failure));
        expect(&machine, code, Severity::Prevents, &[word]);
    }
}

#[test]
fn a_driver_older_than_pytorchs_cuda_is_named_with_the_one_that_is_needed() {
    let with = |driver: &str, cuda: &str| {
        let mut machine = laptop();
        machine.driver.version = Some(driver.to_owned());
        let torch = machine.python.torch.as_mut().unwrap();
        torch.cuda = Some(cuda.to_owned());
        torch.opened = Some(Opened {
            failure: Some("The NVIDIA driver on your system is too old".to_owned()),
            ..Opened::default()
        });
        machine.virtual_gpus.worker = None;
        machine
    };
    let words = ["570.86.15", "580 or later", "cu126"];
    expect(&with("570.86.15", "13.0"), Code::DriverTooOld, Severity::Prevents, &words);
    expect(&with("470.82.01", "12.8"), Code::DriverTooOld, Severity::Prevents, &["525"]);
    let mut minor = with("535.54.03", "12.8");
    minor.python.torch.as_mut().unwrap().opened = None;
    assert_eq!(diagnose(&minor, true), [], "minor versions are compatible");
}

#[test]
fn a_card_that_pytorch_has_no_kernels_for_is_named_with_the_build_that_has() {
    for ((major, minor), word) in [((6, 1), "cu126"), ((13, 0), "cu130")] {
        let mut machine = laptop();
        machine.gpus[0].compute_capability = Some(ComputeCapability { major, minor });
        let found = diagnose(&machine, false);
        assert_eq!((found[0].code, found[0].severity), (Code::NoKernels, Severity::Prevents));
        assert!(found[0].remedy.as_ref().unwrap().contains(word), "{found:?}");
        assert_eq!(found[0].gpu, Some(0));
    }
    let mut turing = laptop();
    turing.gpus[0].compute_capability = Some(ComputeCapability { major: 7, minor: 5 });
    expect(&turing, Code::NoBf16, Severity::Note, &["fp16 with a gradient scaler"]);
}

#[test]
fn where_nothing_explains_it_pytorchs_own_words_are_given() {
    let mut machine = laptop();
    let opened = Opened { failure: Some("unknown error".to_owned()), ..Opened::default() };
    machine.python.torch.as_mut().unwrap().opened = Some(opened.clone());
    expect(&machine, Code::CudaFails, Severity::Prevents, &["unknown error", "nvidia_uvm"]);
    let mut without = bare();
    let on_virtual_gpu = true;
    without.python.torch.as_mut().unwrap().opened = Some(Opened { on_virtual_gpu, ..opened });
    let found = diagnose(&without, false);
    assert!(found.iter().any(|it| it.code == Code::CudaFails), "{found:?}");
    assert!(found.iter().all(|it| it.severity == Severity::Note), "{found:?}");
}

#[test]
fn a_worker_of_another_pytorch_and_one_that_fails_are_told() {
    let mut machine = laptop();
    machine.virtual_gpus.worker.as_mut().unwrap().torch = "2.10.0".to_owned();
    expect(&machine, Code::AnotherTorch, Severity::Note, &["2.10.0", "2.11.0+cu130"]);
    machine.virtual_gpus.worker = None;
    machine.virtual_gpus.worker_failure = Some("no worker at `x`".to_owned());
    expect(&machine, Code::WorkerFails, Severity::Note, &["no worker at `x`", "make"]);
}

#[test]
fn the_worst_comes_first() {
    let mut machine = laptop();
    machine.system.mps = true;
    machine.system.on_battery = Some(true);
    machine.gpus[0].modes.compute = Some(ComputeMode::Prohibited);
    let found: Vec<_> = diagnose(&machine, false).iter().map(|it| it.severity).collect();
    assert_eq!(found, [Severity::Prevents, Severity::Harms, Severity::Note]);
}
