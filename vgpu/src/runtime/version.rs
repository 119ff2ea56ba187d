//! Which CUDA runtime this library stands in for: the one that the program brought along.

use std::ffi::{CString, c_int};
use std::sync::OnceLock;

use super::status::{Status, UNKNOWN, status};
use crate::device;
use crate::entry::{Out, entry_points};
use crate::real_library::RealLibrary;

/// Major versions of the runtime whose programs this library serves.
const MAJORS: std::ops::RangeInclusive<u32> = 12..=14;

/// Version of the runtime that the process loaded, 1000 × major + 10 × minor. NVIDIA's own library is
/// in PyTorch's list of needed ones and so is loaded beside this one; its version is a constant that
/// it tells without a driver. Where there is none, the version that the driver supports.
pub(crate) fn runtime_version() -> c_int {
    static VERSION: OnceLock<c_int> = OnceLock::new();
    *VERSION.get_or_init(|| {
        MAJORS.rev().find_map(version_of_loaded).unwrap_or_else(|| {
            device::machine().map_or(0, |machine| machine.description.cuda_version)
        })
    })
}

fn version_of_loaded(major: u32) -> Option<c_int> {
    let name = CString::new(format!("libcudart.so.{major}")).ok()?;
    let library = RealLibrary::loaded(&name)?;
    // SAFETY: cudaError_t cudaRuntimeGetVersion(int*), in all versions.
    let get = unsafe {
        library.function::<extern "C" fn(*mut c_int) -> Status>(c"cudaRuntimeGetVersion")
    }?;
    let mut version = 0;
    (get(&raw mut version) == 0 && version > 0).then_some(version)
}

entry_points! {
    on_panic = UNKNOWN;

    /// CUDA version of the runtime.
    fn cudaRuntimeGetVersion(version: Out<c_int>) -> Status {
        version.set(runtime_version());
        status(Ok(()))
    }
}
