//! The entry points that PyTorch may call and that are not implemented.
//!
//! `build.rs` writes one function for each name in `symbols/` that no other file here defines. Each
//! is named in the report, sets its outputs to zero and answers "not supported" in its library's own
//! words. A stub declares only the leading integer arguments it must zero; the C ABIs of x86-64 and
//! AArch64 pass those in registers of their own, whatever else the caller passes.
#![allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "names are NVIDIA's, and the functions are generated"
)]

use crate::{activity, address_space, entry};

/// Names the call in the report and zeroes its outputs: (address, bytes).
fn refuse(name: &'static str, outputs: &[(usize, usize)]) {
    entry::guard(
        name,
        || (),
        || {
            activity::not_implemented(name);
            for (address, bytes) in outputs {
                let in_host_memory = address_space::ordinal_of(*address as *const _).is_none();
                if *address != 0 && in_host_memory {
                    // SAFETY: the interface declares this argument as a pointer, not to const, to a
                    // scalar of this size in host memory, which its caller has promised is valid.
                    unsafe { std::ptr::write_bytes(*address as *mut u8, 0, *bytes) };
                }
            }
        },
    );
}

/// Whether entry point `name` only refuses.
pub(crate) fn is_stub(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
