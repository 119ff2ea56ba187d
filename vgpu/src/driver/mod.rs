//! The CUDA driver (libcuda): what PyTorch, NVRTC-compiled kernels and Triton ask of it.

mod context;
mod device;
mod function;
mod image;
mod launch;
mod limits;
mod logs;
mod managed;
mod memory;
mod module;
mod occupancy;
mod pool;
mod stream;
mod tensor_map;
mod virtual_memory;
