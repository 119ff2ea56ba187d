//! The real PyTorch on the virtual GPU, each test a program of its own.
//!
//! Needs the built library beside this test and a Python with PyTorch: `VRAMFIT_PYTHON`, which
//! `scripts/setup.sh` sets for cargo.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

mod attempts;
mod convolutions;
mod cudnn;
mod distributed;
mod environments;
mod exact;
mod fourier;
mod linear_algebra;
mod loader;
mod machine;
mod memory;
mod operators;
mod recurrent;
mod shadow;
mod sparse;
mod training;
mod versions;
