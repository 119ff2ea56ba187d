//! Unmodified programs of the frameworks that people train with, under `vramfit run` on a virtual GPU.
//!
//! The programs in `programs/` know nothing of vramfit. Each builds a small model with random weights,
//! trains for a few steps, and prints as one JSON line what it did and what PyTorch says it took. With
//! `VRAMFIT_FRAMEWORKS` set (`make test-frameworks`), more of them run, and each PyTorch that
//! `scripts/frameworks` lists must be there.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

/// accelerate and Lightning.
mod accelerate;
/// diffusers.
mod diffusers;
/// Several ranks, started by `torchrun`.
mod distributed;
/// The environments with a PyTorch.
mod environment;
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
