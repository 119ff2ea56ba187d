//! The CUDA device: allocator statistics, caches, numeric switches, versions.

use std::ffi::{CStr, c_char, c_int};

use tch::TchError;
use vramfit::probe::protocol::DeviceMemory;
use vramfit::units::Bytes;

use super::check;

/// The caching allocator's statistics of one device. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Allocator {
    /// In blocks handed out, now.
    pub(crate) allocated: i64,
    /// Most of `allocated` since the peaks were reset.
    pub(crate) allocated_peak: i64,
    /// In segments taken from the driver, now.
    pub(crate) reserved: i64,
    /// Most of `reserved` since the peaks were reset.
    pub(crate) reserved_peak: i64,
    /// Times that the cache was flushed to go on, since the process started.
    pub(crate) retries: i64,
    /// Times that even that did not help.
    pub(crate) ooms: i64,
}

// SAFETY: the signatures are those of shim/device.cpp.
unsafe extern "C" {
    fn vf_allocator(device: i8, out: *mut Allocator) -> c_int;
    fn vf_memory(device: i8, free: *mut u64, total: *mut u64) -> c_int;
    fn vf_reset_peaks(device: i8) -> c_int;
    fn vf_empty_cache() -> c_int;
    fn vf_clear_cublas_workspaces() -> c_int;
    fn vf_allow_tf32_matmul(allow: bool) -> c_int;
    fn vf_torch_version() -> *const c_char;
    fn vf_cuda_version(out: *mut i64) -> c_int;
    fn vf_cudnn_version(out: *mut i64) -> c_int;
    fn vf_device_name(device: i8, out: *mut c_char, size: usize) -> c_int;
}

/// Statistics of device 0.
pub(crate) fn allocator() -> Result<Allocator, TchError> {
    let mut statistics = Allocator::default();
    // SAFETY: `statistics` outlives the call.
    check(unsafe { vf_allocator(0, &raw mut statistics) })?;
    Ok(statistics)
}

/// What `cudaMemGetInfo` says of device 0.
pub(crate) fn memory() -> Result<DeviceMemory, TchError> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both numbers outlive the call.
    check(unsafe { vf_memory(0, &raw mut free, &raw mut total) })?;
    Ok(DeviceMemory { free: Bytes(free), total: Bytes(total) })
}

/// Sets the peaks of device 0 to what is in use now.
pub(crate) fn reset_peaks() -> Result<(), TchError> {
    // SAFETY: no argument to get wrong.
    check(unsafe { vf_reset_peaks(0) })
}

/// Gives cached segments back to the driver.
pub(crate) fn empty_cache() -> Result<(), TchError> {
    // SAFETY: no argument to get wrong.
    check(unsafe { vf_empty_cache() })
}

/// Frees the workspaces that cuBLAS keeps for each thread, so that the next model meets an
/// allocator as empty as a fresh process's.
pub(crate) fn clear_cublas_workspaces() -> Result<(), TchError> {
    // SAFETY: no computation is in flight on this thread; cuBLAS makes workspaces anew as needed.
    check(unsafe { vf_clear_cublas_workspaces() })
}

/// Whether fp32 matrix products may be computed in tf32 (`torch.backends.cuda.matmul.allow_tf32`).
pub(crate) fn allow_tf32_matmul(allow: bool) -> Result<(), TchError> {
    // SAFETY: no argument to get wrong.
    check(unsafe { vf_allow_tf32_matmul(allow) })
}

/// Version of libtorch.
pub(crate) fn torch_version() -> String {
    // SAFETY: the function returns a string literal.
    unsafe { CStr::from_ptr(vf_torch_version()) }.to_string_lossy().into_owned()
}

/// CUDA version that libtorch was built with, for example `13.0`.
pub(crate) fn cuda_version() -> Result<String, TchError> {
    let mut version = 0;
    // SAFETY: `version` outlives the call.
    check(unsafe { vf_cuda_version(&raw mut version) })?;
    Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
}

/// cuDNN version in use, for example `9.19.0`.
pub(crate) fn cudnn_version() -> Result<String, TchError> {
    let mut version = 0;
    // SAFETY: `version` outlives the call.
    check(unsafe { vf_cudnn_version(&raw mut version) })?;
    // Since version 9: 10000 × major + 100 × minor + patch.
    Ok(format!("{}.{}.{}", version / 10_000, version % 10_000 / 100, version % 100))
}

/// Product name of device 0.
pub(crate) fn device_name() -> Result<String, TchError> {
    let mut name = [0 as c_char; 256];
    // SAFETY: the function writes at most `size` bytes, the last of them a zero.
    check(unsafe { vf_device_name(0, name.as_mut_ptr(), name.len()) })?;
    // SAFETY: terminated, see above.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Ok(name.to_string_lossy().into_owned())
}
