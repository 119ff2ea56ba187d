//! Names inside the folder of a virtual GPU.

/// Environment variable that names the folder of the virtual GPU a process runs on.
pub const VARIABLE: &str = "VRAMFIT_VGPU";
/// Environment variable that may name a libcudnn of version 9.8 or newer: where the program's own is
/// older, it is asked for engines and workspaces instead.
pub const CUDNN_VARIABLE: &str = "VRAMFIT_CUDNN";
/// Environment variable that has a report list all works, however many: `1`.
pub const ALL_WORK_VARIABLE: &str = "VRAMFIT_VGPU_ALL_WORK";
/// The [`Description`](crate::Description).
pub const DESCRIPTION: &str = "device.json";
/// Binary table of the processes that use the virtual GPU, shared by mapping.
pub const PROCESSES: &str = "processes";
/// Names under which programs open NVIDIA's libraries at run time; each a link to the virtual GPU.
pub const LIBRARIES: [&str; 4] =
    ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"];

/// File name of the meeting place of NCCL communicator `name`.
pub fn communicator(name: u64) -> String {
    format!("nccl-{name:016x}")
}

/// File name of the report of process `pid`.
pub fn report(pid: u32) -> String {
    format!("report-{pid}.json")
}
