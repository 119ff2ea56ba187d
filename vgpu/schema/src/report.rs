use serde::{Deserialize, Serialize};

use vramfit_vgpu_cost::Work;

use crate::Python;

/// What one process did on the virtual GPU, written when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`](crate::SCHEMA) of the writer.
    pub schema: u32,
    /// The process that wrote it.
    pub pid: u32,
    /// Its executable and arguments, joined by spaces.
    pub command: String,
    /// The devices this process sees, as indices of the description; the lists below follow it.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// Highest use by all processes together, one entry a device, in bytes, as seen by this one.
    pub device_peak_bytes: Vec<u64>,
    /// Highest use by this process, one entry a device.
    pub process_peak: Vec<ProcessPeak>,
    /// Code of libraries that this process loaded, one entry a device.
    #[serde(default)]
    pub loaded_code: Vec<LoadedCode>,
    /// Memory held by this process over time; thinned so that peaks survive.
    pub timeline: Vec<TimelinePoint>,
    /// Kernels launched.
    pub launches: u64,
    /// The most launched kernels, most launched first.
    pub kernels: Vec<KernelCount>,
    /// Small constant fills that were really carried out.
    pub fills_computed: u64,
    /// Matrix products by shape and type, largest total work first.
    pub gemms: Vec<Gemm>,
    /// cuDNN operation graphs by shape, largest total work first.
    pub convolutions: Vec<Convolution>,
    /// Where the virtual time went, one entry a device.
    #[serde(default)]
    pub time: Vec<Time>,
    /// What was launched, with its price; what took longest first. The 200 costliest are listed, all with
    /// [`folder::ALL_WORK_VARIABLE`](crate::folder::ALL_WORK_VARIABLE).
    #[serde(default)]
    pub work: Vec<PricedWork>,
    /// Copies by direction.
    pub copies: CopyTotals,
    /// Values that came back to the host though a kernel that never ran should have written them.
    /// Those that the Python side accounts for are not among them.
    pub read_backs: Vec<ReadBack>,
    /// Who answered for cuDNN's engines and workspaces; none where cuDNN was not used.
    #[serde(default)]
    pub cudnn: Option<Cudnn>,
    /// NCCL calls by size, most bytes first.
    #[serde(default)]
    pub collectives: Vec<Collective>,
    /// Sizes in this report that are estimates, each with its basis, sorted.
    #[serde(default)]
    pub estimates: Vec<String>,
    /// Entry points that were called but are not implemented, sorted; each answered "not supported".
    pub not_implemented: Vec<String>,
    /// Failures inside the virtual GPU itself, as text. Empty unless there is a bug to report.
    pub internal_errors: Vec<String>,
    /// What the Python side of the process told; none of another program, or without its help.
    #[serde(default)]
    pub python: Option<Python>,
}

/// Where the time of one device went, in seconds of virtual time; zeros of one that was given nothing.
/// Streams work side by side: the parts may add up to more than the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// From the first launch to the end of the last.
    pub total: f64,
    /// Of it with any work; the rest it waited for the host.
    pub busy: f64,
    /// In kernels that wait for arithmetic.
    pub compute: f64,
    /// In kernels that wait for the device's memory.
    pub memory: f64,
    /// In kernels that take no longer than their launch.
    pub launch: f64,
    /// Moving data to or from the host or other devices.
    pub transfer: f64,
}

/// Launches of the same work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricedWork {
    /// The kernel, demangled where that is known, or the library call.
    pub name: String,
    /// What each launch asks for.
    pub work: Work,
    /// Launches.
    pub count: u64,
    /// What all of them take, in seconds.
    pub seconds: f64,
}

/// Peak of one process on one device, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPeak {
    /// Context and allocations together.
    pub total_bytes: u64,
    /// Of it the context.
    pub context_bytes: u64,
}

/// Code on a device, part of the context. Libraries that the virtual GPU stands in for, such as
/// cuBLAS, load kernels of their own, which are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedCode {
    /// Kernels that were launched.
    pub kernels: u64,
    /// Modules that they are from.
    pub modules: u64,
    /// Size of those modules, all their kernels and tables counted: the most that they can take.
    pub module_bytes: u64,
}

/// One step of the memory timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelinePoint {
    /// Device ordinal.
    pub device: u32,
    /// Seconds since the process first touched the virtual GPU (host time).
    pub seconds: f64,
    /// Kernels launched so far: a clock that does not depend on the host.
    pub launches: u64,
    /// Bytes held by this process, context included.
    pub used_bytes: u64,
}

/// Launches of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCount {
    /// Name as registered (mangled), or the library call that stands for it.
    pub name: String,
    /// How often it was launched.
    pub launches: u64,
}

/// Matrix products of one shape: `count` times `batch` products of m×k by k×n.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gemm {
    /// The library call.
    pub call: String,
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Length of the inner products.
    pub k: u64,
    /// Products in one call.
    pub batch: u64,
    /// Input type as CUDA names it, e.g. `R_16BF`.
    pub input_type: String,
    /// Compute type as cuBLAS names it, e.g. `32F_FAST_TF32`.
    pub compute_type: String,
    /// Calls.
    pub count: u64,
}

/// Executions of one cuDNN plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convolution {
    /// Operation as cuDNN names it, e.g. `convolution_forward`.
    pub operation: String,
    /// Dimensions of input (x), filter (w) and output (y), as cuDNN was told them.
    pub x: Vec<i64>,
    /// See `x`.
    pub w: Vec<i64>,
    /// See `x`.
    pub y: Vec<i64>,
    /// Input type as cuDNN names it, e.g. `HALF`.
    pub data_type: String,
    /// Workspace of the plan in bytes, as the real cuDNN states it.
    pub workspace_bytes: u64,
    /// Executions.
    pub count: u64,
}

/// Where the workspaces of convolutions come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cudnn {
    /// Version of the program's own cuDNN, 10000 × major + 100 × minor + patch.
    pub program_version: u64,
    /// Who answered.
    pub answered_by: CudnnAnswer,
    /// Version of the cuDNN that answered; none for the rule.
    pub answering_version: Option<u64>,
}

/// Who answers for cuDNN. Below 9.8 it cannot be asked without a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CudnnAnswer {
    /// The program's own library: exact.
    Program,
    /// A newer one ([`folder::CUDNN_VARIABLE`](crate::folder::CUDNN_VARIABLE)): engines may differ.
    Newer,
    /// A rule: an estimate.
    Rule,
}

/// NCCL calls of one kind and size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// The library call, e.g. `ncclAllReduce`.
    pub call: String,
    /// One rank's share in bytes.
    pub bytes: u64,
    /// Calls.
    pub count: u64,
}

/// Copies between host and device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTotals {
    /// Host to device, number of copies.
    pub to_device: u64,
    /// Host to device, bytes.
    pub to_device_bytes: u64,
    /// Device to host, number of copies.
    pub to_host: u64,
    /// Device to host, bytes.
    pub to_host_bytes: u64,
}

/// Copies to the host of bytes that were not written by the host, the last kernel being `kernel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// The kernel launched last before the copy.
    pub kernel: String,
    /// Size of one copy in bytes.
    pub bytes: u64,
    /// How often it happened.
    pub count: u64,
}
