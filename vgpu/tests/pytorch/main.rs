//! The real PyTorch on the virtual GPU, each test a program of its own.
//!
//! Needs the built library beside this test and a Python with PyTorch: `VRAMFIT_PYTHON`, which
//! `scripts/setup.sh` sets for cargo.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

mod allocator;
mod attempts;
mod clock;
mod compiled;
mod convolutions;
mod cudnn;
mod distributed;
mod environments;
mod exact;
mod fourier;
mod graphs;
mod linear_algebra;
mod loader;
mod machine;
mod memory;
mod operators;
mod recurrent;
mod shadow;
mod sharded;
mod sharing;
mod sparse;
mod streams;
mod third_party;
mod training;
mod versions;
mod works;
