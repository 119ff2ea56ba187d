//! The system around the GPUs, by `/proc`, `/sys`, `/dev` and the environment.

use std::fs;
use std::path::PathBuf;

use super::Reach;
use crate::device::Platform;
use crate::doctor::machine::System;

/// Where distributions put the driver's libraries.
const LIBRARIES: [&str; 4] =
    ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/lib/aarch64-linux-gnu"];

pub(super) fn system(reach: &Reach<'_>) -> System {
    let kernel = read(reach, "proc/sys/kernel/osrelease").unwrap_or_default();
    let platform = match kernel.to_ascii_lowercase().contains("microsoft") {
        true => Platform::Wsl,
        false => Platform::Linux,
    };
    let variable = |name: &str| (reach.variable)(name);
    let mps = variable("CUDA_MPS_PIPE_DIRECTORY")
        .map_or_else(|| reach.path("tmp/nvidia-mps"), PathBuf::from)
        .join("control");
    System {
        platform,
        container: container(reach),
        board: board(reach),
        device_files: reach.path("dev/nvidiactl").exists(),
        dxg: reach.path("dev/dxg").exists(),
        linux_driver_in_wsl: platform == Platform::Wsl && library(reach, "libcuda.so.1").is_some(),
        on_battery: on_battery(reach),
        visible_devices: variable("CUDA_VISIBLE_DEVICES"),
        mps: mps.exists(),
        mps_memory_limit: variable("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"),
        kernel,
    }
}

/// Version of the module that is loaded, e.g. from `NVRM version: NVIDIA UNIX x86_64 Kernel Module
/// 580.65.06  Sun Jul 27 …`.
pub(super) fn module_version(reach: &Reach<'_>) -> Option<String> {
    let text = read(reach, "proc/driver/nvidia/version")?;
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    line.split_whitespace().find(|word| is_version(word)).map(str::to_owned)
}

/// Version of the library that is installed: `libnvidia-ml.so.1` is a link to a file named by it.
pub(super) fn library_version(reach: &Reach<'_>) -> Option<String> {
    let path = library(reach, "libnvidia-ml.so.1")?;
    let target = fs::read_link(path).ok()?;
    let name = target.file_name()?.to_str()?.strip_prefix("libnvidia-ml.so.")?.to_owned();
    is_version(&name).then_some(name)
}

fn is_version(word: &str) -> bool {
    word.contains('.') && word.chars().all(|it| it.is_ascii_digit() || it == '.')
}

fn library(reach: &Reach<'_>, name: &str) -> Option<PathBuf> {
    let found = LIBRARIES.iter().map(|folder| reach.path(folder).join(name));
    found.into_iter().find(|path| fs::symlink_metadata(path).is_ok())
}

/// The kind of container, by the marks that their engines leave.
fn container(reach: &Reach<'_>) -> Option<String> {
    if let Some(kind) = (reach.variable)("container").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    if reach.path("run/.containerenv").exists() {
        return Some("podman".to_owned());
    }
    if (reach.variable)("KUBERNETES_SERVICE_HOST").is_some() {
        return Some("kubernetes".to_owned());
    }
    if (reach.variable)("APPTAINER_CONTAINER").is_some() || reach.path("singularity").exists() {
        return Some("apptainer".to_owned());
    }
    reach.path(".dockerenv").exists().then(|| "docker".to_owned())
}

/// A board with the CPU and the GPU on one chip, by its device tree.
fn board(reach: &Reach<'_>) -> Option<String> {
    let model = read(reach, "proc/device-tree/model")?;
    let model = model.trim_end_matches('\0').to_owned();
    model.contains("NVIDIA").then_some(model)
}

/// Whether mains power is missing, as far as the kernel knows of a mains adapter.
fn on_battery(reach: &Reach<'_>) -> Option<bool> {
    let supplies = fs::read_dir(reach.path("sys/class/power_supply")).ok()?;
    let online: Vec<bool> = supplies
        .flatten()
        .filter(|it| {
            fs::read_to_string(it.path().join("type")).is_ok_and(|it| it.trim() == "Mains")
        })
        .filter_map(|it| fs::read_to_string(it.path().join("online")).ok())
        .map(|online| online.trim() == "1")
        .collect();
    (!online.is_empty()).then(|| !online.contains(&true))
}

/// The text of a small file, without space at its end.
pub(super) fn read(reach: &Reach<'_>, below: &str) -> Option<String> {
    let text = fs::read(reach.path(below)).ok()?;
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    (!text.is_empty()).then_some(text)
}
