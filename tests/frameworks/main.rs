//! Unmodified programs of the frameworks that people train with, under `vramfit run` on a virtual GPU.
//!
//! The programs in `programs/` know nothing of vramfit. Each builds a small model with random weights,
//! trains for a few steps, and prints as one JSON line what it did and what PyTorch says it took. More of
//! them run with `make test-frameworks`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

/// accelerate and Lightning.
mod accelerate;
/// diffusers.
mod diffusers;
/// Several ranks, started by `torchrun`.
mod distributed;
/// The environments with a PyTorch.
#[path = "../../vgpu/tests/pytorch/environments.rs"]
mod environments;
/// Hugging Face's `Trainer`, and PEFT.
mod hugging_face;
/// A training loop of one's own.
mod own_loop;
/// Plans for what they train.
mod planning;
/// Running a program, and what is asked of each.
mod program;
/// timm's and torchvision's models.
mod vision;

/// Whether everything is to run, however long it takes.
fn is_thorough() -> bool {
    std::env::var_os("VRAMFIT_FRAMEWORKS").is_some_and(|name| name == "main")
}
