//! The CUDA driver (libcuda): what PyTorch, NVRTC-compiled kernels and Triton ask of it.

mod context;
mod device;
mod logs;
mod memory;
mod module;
mod pool;
mod stream;
mod virtual_memory;
