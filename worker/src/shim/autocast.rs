//! Autocast regions.

use std::ffi::c_int;
use std::thread;

use tch::{Device, Kind, TchError};

use super::check;

// SAFETY: the signatures are those of shim/autocast.cpp.
unsafe extern "C" {
    fn vf_autocast_enter(
        device: i8,
        enabled: bool,
        dtype: i8,
        was_enabled: *mut bool,
        was_dtype: *mut i8,
    ) -> c_int;
    fn vf_autocast_forget_casts() -> c_int;
    fn vf_autocast_leave(device: i8, was_enabled: bool, was_dtype: i8) -> c_int;
}

/// An autocast region, left when dropped; the cast copies of weights go with the outermost one.
#[must_use]
pub(crate) struct Region {
    device: i8,
    was_enabled: bool,
    was_dtype: i8,
}

impl Region {
    /// Enters a region of `device` that computes in `dtype`: `Kind::Half` or `Kind::BFloat16`.
    pub(crate) fn enter(device: Device, dtype: Kind) -> Result<Self, TchError> {
        // Of c10::DeviceType, where tch counts otherwise.
        let device = if device.is_cuda() { 1 } else { 0 };
        let mut region = Self { device, was_enabled: false, was_dtype: 0 };
        // Numbers of c10::ScalarType.
        let dtype = if dtype == Kind::Half { 5 } else { 15 };
        // SAFETY: the pointers are to fields of `region`, which outlives the call.
        check(unsafe {
            vf_autocast_enter(
                device,
                true,
                dtype,
                &raw mut region.was_enabled,
                &raw mut region.was_dtype,
            )
        })?;
        Ok(region)
    }
}

/// Lets go of the cast copies of weights that this region keeps for whoever casts them next; without a
/// region there are none.
pub(crate) fn forget_casts() -> Result<(), TchError> {
    // SAFETY: no argument to get wrong; whoever uses a copy holds it by itself.
    check(unsafe { vf_autocast_forget_casts() })
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the values are those that entering the region gave.
        let left =
            check(unsafe { vf_autocast_leave(self.device, self.was_enabled, self.was_dtype) });
        // Leaving sets three thread-local values; it has no way to fail.
        debug_assert!(left.is_ok() || thread::panicking());
    }
}
