// The device: allocator statistics, caches, numeric switches, versions.
#include "shim.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <tuple>

namespace vramfit {

std::string& error() {
  thread_local std::string text;
  return text;
}

namespace {

c10::DeviceAllocator& allocator() {
  return *c10::getDeviceAllocator(c10::kCUDA);
}

// A function that libtorch_cuda exports but only headers that need CUDA's own declare.
template <typename Function>
Function* exported(const char* mangled) {
  void* symbol = dlsym(RTLD_DEFAULT, mangled);
  if (symbol == nullptr) {
    throw std::runtime_error(std::string("libtorch_cuda does not export ") + mangled);
  }
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace
}  // namespace vramfit

using namespace vramfit;

extern "C" {

struct VfAllocator {
  int64_t allocated;
  int64_t allocated_peak;
  int64_t reserved;
  int64_t reserved_peak;
  int64_t retries;
  int64_t ooms;
};

const char* vf_error() {
  return error().c_str();
}

int vf_allocator(int8_t device, VfAllocator* out) {
  return guarded([&] {
    constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = allocator().getDeviceStats(device);
    *out = {
        stats.allocated_bytes[all].current,
        stats.allocated_bytes[all].peak,
        stats.reserved_bytes[all].current,
        stats.reserved_bytes[all].peak,
        stats.num_alloc_retries,
        stats.num_ooms,
    };
  });
}

// What cudaMemGetInfo says.
int vf_memory(int8_t device, uint64_t* free, uint64_t* total) {
  return guarded([&] { std::tie(*free, *total) = allocator().getMemoryInfo(device); });
}

int vf_reset_peaks(int8_t device) {
  return guarded([&] { allocator().resetPeakStats(device); });
}

int vf_empty_cache() {
  return guarded([&] { allocator().emptyCache(); });
}

// cuBLAS keeps one workspace for each thread and stream for ever, unless told to let go.
int vf_clear_cublas_workspaces() {
  return guarded([&] { exported<void()>("_ZN2at4cuda21clearCublasWorkspacesEv")(); });
}

// The switch torch.backends.cuda.matmul.allow_tf32. Convolutions may use tf32 by default.
int vf_allow_tf32_matmul(bool allow) {
  return guarded([&] { at::globalContext().setAllowTF32CuBLAS(allow); });
}

const char* vf_torch_version() {
  return TORCH_VERSION;
}

int vf_cuda_version(int64_t* out) {
  return guarded([&] { *out = at::detail::getCUDAHooks().versionCUDART(); });
}

int vf_cudnn_version(int64_t* out) {
  return guarded([&] { *out = at::detail::getCUDAHooks().versionRuntimeCuDNN(); });
}

int vf_device_name(int8_t device, char* out, size_t size) {
  return guarded([&] {
    // The name is the first field of cudaDeviceProp in CUDA 12 and 13.
    const auto properties =
        exported<const char*(int8_t)>("_ZN2at4cuda19getDevicePropertiesEa");
    std::strncpy(out, properties(device), size - 1);
    out[size - 1] = '\0';
  });
}
}
