// What the worker needs of libtorch and tch does not have. Each function returns 0, or 1 after it
// kept the exception's text for vf_error: no exception leaves this library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <ATen/core/Tensor.h>

namespace vramfit {

// Text of the last failure on this thread.
std::string& error();

template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& failure) {
    error() = failure.what();
  } catch (...) {
    error() = "an exception of unknown type";
  }
  return 1;
}

// A list of tensors as tch holds them: pointers to handles.
inline std::vector<at::Tensor> list(at::Tensor* const* handles, size_t count) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    tensors.push_back(*handles[i]);
  }
  return tensors;
}

// Hands tensors over to the caller, who owns the handles from then on.
inline void hand_over(std::vector<at::Tensor>&& tensors, at::Tensor** out) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    out[i] = new at::Tensor(std::move(tensors[i]));
  }
}

}  // namespace vramfit
