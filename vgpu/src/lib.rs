//! A virtual NVIDIA GPU at the C ABI.
//!
//! Loaded before PyTorch's own libraries (`LD_PRELOAD`), this library answers for libcudart, libcuda,
//! cuBLAS, cuDNN, cuFFT, cuSOLVER, cuSPARSE, NCCL and NVML. It executes no kernel and hands out address
//! space instead of memory, so that the real PyTorch above it (dispatcher, autograd, autocast, caching
//! allocator, kernel choice, out-of-memory errors) tells what it would do on a card that is not there.
//!
//! ```text
//! runtime/ driver/ cublas/ cudnn/ cufft … nccl/ nvml   what NVIDIA's libraries export
//!        │      (bodies run under entry::guard)
//! launch  copy  graph/  memory/                     what they do
//! device  processes  activity  python               what is known, counted and told
//!        │
//! report                                            what a process did, as JSON, when it ends
//! ```
//!
//! It knows nothing of workloads or plans: a folder named by one environment variable holds the
//! device description, and receives the report (see `vramfit-vgpu-schema`).

mod activity;
mod address_space;
mod by_address;
mod clock;
mod copy;
mod cubin;
mod cublas;
mod cublaslt;
mod cudnn;
mod cufft;
mod cupti;
mod cusolver;
mod cusparse;
mod data_type;
mod device;
mod driver;
mod entry;
mod fat_binary;
mod graph;
mod handles;
mod kernel;
mod launch;
mod local_memory;
mod memory;
mod nccl;
mod nvml;
mod occupancy;
mod on_stream;
mod own_library;
mod processes;
mod python;
mod real_library;
mod report;
mod runtime;
mod shared_file;
mod stubs;
mod timeline;
