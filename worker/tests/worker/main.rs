//! The worker as a process: `protocol` on the CPU, `points` and `parity` on a virtual GPU, with the
//! real libtorch throughout.
//!
//! Needs the built virtual GPU beside this test, and for `parity` a Python with PyTorch:
//! `VRAMFIT_PYTHON`, which `scripts/setup.sh` sets for cargo.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod function;
mod machine;
mod parity;
mod points;
mod protocol;
mod worker;
