//! The exported names against what each installed PyTorch asks NVIDIA's libraries for, so that a new
//! PyTorch that needs more is known at once.
//!
//! Needs `nm` and the environments of `pytorch/environments.rs`.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::mem::transmute;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "pytorch/environments.rs"]
mod environments;

type Names = BTreeSet<String>;

/// NVIDIA's own are used where no device is asked for: run-time compilation, profiler ranges.
const REAL: [&str; 3] = ["nvrtc", "nvJitLink", "nvtx"];

fn site_packages(python: &Path) -> PathBuf {
    let output = Command::new(python)
        .args(["-c", "import sysconfig, torch; print(sysconfig.get_paths()['purelib'])"])
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot run {}: {error}; run `make setup`", python.display())
        });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} has no PyTorch: {errors}", python.display());
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Shared libraries under `folder`, each once.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            found.extend(libraries(&path));
        } else if name.ends_with(".so") || name.contains(".so.") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Dynamic symbols of `library`, without their versions.
fn symbols(which: &str, library: &Path) -> Names {
    let output = Command::new("nm").args(["-D", which]).arg(library).output().unwrap();
    assert!(output.status.success(), "nm {}", library.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    names.map(|name| name.split('@').next().unwrap().to_owned()).collect()
}

/// The library under test: the test's own folder is `deps` in the folder that holds it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().parent().unwrap().join("libvramfit_vgpu.so");
    assert!(library.exists(), "{} is not built; run `cargo build`", library.display());
    library
}

fn exported() -> Names {
    symbols("--defined-only", &library())
}

/// The driver's and NVML's names; their libraries come with a driver, not with PyTorch.
fn is_of_driver(name: &str) -> bool {
    ["cu", "nvml"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()))
    })
}

#[test]
fn everything_that_each_pytorch_wants_of_nvidia_is_exported() {
    let exported = exported();
    let mut missing = Vec::new();
    for environment in environments::all() {
        let site = site_packages(&environment.python);
        let wanted = wanted_of_nvidia(&site);
        assert!(wanted.len() > 600, "only {}: is `nm` reading the right files?", wanted.len());
        let of = &environment.name;
        missing.extend(wanted.difference(&exported).map(|name| format!("{name} ({of})")));
    }
    assert!(missing.is_empty(), "run symbols/generate.py; missing:\n{}", missing.join("\n"));
}

/// NVIDIA's entry points that PyTorch, torchvision and Triton of one environment leave undefined.
fn wanted_of_nvidia(site: &Path) -> Names {
    let mut nvidias = Names::new();
    for library in libraries(&site.join("nvidia")) {
        // Its names are those of every BLAS; PyTorch has its own.
        if !library.file_name().unwrap().to_string_lossy().starts_with("libnvblas") {
            nvidias.extend(symbols("--defined-only", &library));
        }
    }
    assert!(nvidias.contains("cudaMalloc"), "no CUDA runtime in {}", site.display());
    let mut wanted = Names::new();
    for package in ["torch", "torchvision", "triton"] {
        let folder = site.join(package);
        assert!(folder.exists(), "{package} is not installed in {}", site.display());
        // Triton's copy of CUPTI is NVIDIA's.
        for library in libraries(&folder).iter().filter(|it| !it.iter().any(|part| part == "cupti"))
        {
            wanted.extend(symbols("--undefined-only", library).into_iter().filter(|name| {
                let real = REAL.iter().any(|prefix| name.starts_with(prefix));
                let nvidias_own = !name.starts_with("_Z") && nvidias.contains(name);
                !real && (nvidias_own || is_of_driver(name))
            }));
        }
    }
    wanted
}

#[test]
fn everything_looked_up_by_name_is_exported() {
    let list = include_str!("../symbols/by_name.list");
    let exported = exported();
    let names = list.lines().filter(|line| !line.starts_with('#'));
    let missing: Vec<&str> = names.filter(|name| !exported.contains(*name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn nothing_else_is_exported() {
    // A preloaded library is searched first by every other: a name of ours could take the place of one
    // of theirs.
    let prefixes = ["cu", "__cuda", "nccl", "nvml", "nvshmem", "nvjpeg", "vramfit_vgpu_"];
    let exported = exported();
    let foreign: Vec<&String> = exported
        .iter()
        .filter(|name| !prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    assert_eq!(foreign, Vec::<&String>::new());
}

#[test]
fn what_is_not_implemented_refuses_and_zeroes_its_answers() {
    let path = CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: the path is zero-terminated; the library does nothing when it is loaded.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null());
    let symbol = |name: &CStr| {
        // SAFETY: the handle is open and the name zero-terminated.
        let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        address
    };
    let mut descriptor = 7_usize;
    // SAFETY: cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t*), where a descriptor
    // is a pointer.
    let create: extern "C" fn(*mut usize) -> i32 =
        unsafe { transmute(symbol(c"cudnnCreatePoolingDescriptor")) };
    assert_eq!(create(&raw mut descriptor), 3000, "CUDNN_STATUS_NOT_SUPPORTED");
    assert_eq!(descriptor, 0);
    assert_eq!(create(std::ptr::null_mut()), 3000, "an answer nobody wants is not written");
}
