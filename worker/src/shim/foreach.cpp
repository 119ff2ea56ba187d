// Operators over lists of tensors, and the in-place operators with a factor, none of which tch has.
#include "shim.h"

#include <ATen/Functions.h>

using namespace vramfit;

using Handles = at::Tensor* const*;

extern "C" {

int vf_drop_gradients(Handles parameters, size_t n) {
  return guarded([&] {
    for (size_t i = 0; i < n; ++i) {
      parameters[i]->mutable_grad().reset();
    }
  });
}

int vf_foreach_add_scalar_(Handles self, size_t n, double scalar) {
  return guarded([&] { at::_foreach_add_(list(self, n), scalar); });
}

int vf_foreach_add_list_(Handles self, Handles other, size_t n, double alpha) {
  return guarded([&] { at::_foreach_add_(list(self, n), list(other, n), alpha); });
}

int vf_foreach_sub_list_(Handles self, Handles other, size_t n) {
  return guarded([&] { at::_foreach_sub_(list(self, n), list(other, n)); });
}

int vf_foreach_mul_scalar_(Handles self, size_t n, double scalar) {
  return guarded([&] { at::_foreach_mul_(list(self, n), scalar); });
}

int vf_foreach_mul_tensor_(Handles self, size_t n, const at::Tensor* other) {
  return guarded([&] { at::_foreach_mul_(list(self, n), *other); });
}

int vf_foreach_lerp_(Handles self, Handles end, size_t n, double weight) {
  return guarded([&] { at::_foreach_lerp_(list(self, n), list(end, n), weight); });
}

int vf_foreach_addcmul_(Handles self, Handles a, Handles b, size_t n, double value) {
  return guarded([&] { at::_foreach_addcmul_(list(self, n), list(a, n), list(b, n), value); });
}

int vf_foreach_addcdiv_(Handles self, Handles a, Handles b, size_t n, const double* values) {
  return guarded([&] {
    const std::vector<at::Scalar> scalars(values, values + n);
    at::_foreach_addcdiv_(list(self, n), list(a, n), list(b, n), scalars);
  });
}

int vf_foreach_div_(Handles self, size_t n, const double* values) {
  return guarded([&] {
    const std::vector<at::Scalar> scalars(values, values + n);
    at::_foreach_div_(list(self, n), scalars);
  });
}

int vf_foreach_sqrt(Handles self, size_t n, at::Tensor** out) {
  return guarded([&] { hand_over(at::_foreach_sqrt(list(self, n)), out); });
}

int vf_foreach_norm(Handles self, size_t n, at::Tensor** out) {
  return guarded([&] { hand_over(at::_foreach_norm(list(self, n), 2.0), out); });
}

int vf_vector_norm(const at::Tensor* self, at::Tensor** out) {
  return guarded([&] { *out = new at::Tensor(at::linalg_vector_norm(*self, 2.0)); });
}

int vf_add_(at::Tensor* self, const at::Tensor* other, double alpha) {
  return guarded([&] { self->add_(*other, alpha); });
}

int vf_addcmul_(at::Tensor* self, const at::Tensor* a, const at::Tensor* b, double value) {
  return guarded([&] { self->addcmul_(*a, *b, value); });
}

int vf_addcdiv_(at::Tensor* self, const at::Tensor* a, const at::Tensor* b, double value) {
  return guarded([&] { self->addcdiv_(*a, *b, value); });
}

struct VfAdam {
  double learning_rate;
  double beta1;
  double beta2;
  double weight_decay;
  double epsilon;
  bool decoupled;
};

// `scale` and `found_inf` come from a gradient scaler, or are null.
int vf_fused_adam_(
    Handles parameters,
    Handles gradients,
    Handles averages,
    Handles squares,
    Handles steps,
    size_t n,
    const VfAdam* options,
    const at::Tensor* scale,
    const at::Tensor* found_inf) {
  return guarded([&] {
    const auto optional = [](const at::Tensor* tensor) {
      return tensor == nullptr ? std::optional<at::Tensor>() : std::optional<at::Tensor>(*tensor);
    };
    const auto step = [&](auto&& function) {
      function(
          list(parameters, n), list(gradients, n), list(averages, n), list(squares, n),
          at::TensorList(), list(steps, n), options->learning_rate, options->beta1, options->beta2,
          options->weight_decay, options->epsilon, /*amsgrad=*/false, /*maximize=*/false,
          optional(scale), optional(found_inf));
    };
    if (options->decoupled) {
      step([](auto&&... arguments) {
        at::_fused_adamw_(std::forward<decltype(arguments)>(arguments)...);
      });
    } else {
      step([](auto&&... arguments) {
        at::_fused_adam_(std::forward<decltype(arguments)>(arguments)...);
      });
    }
  });
}

// `momenta` holds `n` tensors, or none where `momentum` is 0.
int vf_fused_sgd_(
    Handles parameters,
    Handles gradients,
    Handles momenta,
    size_t n,
    double momentum,
    double learning_rate,
    bool first_step,
    const at::Tensor* scale,
    const at::Tensor* found_inf) {
  return guarded([&] {
    const auto optional = [](const at::Tensor* tensor) {
      return tensor == nullptr ? std::optional<at::Tensor>() : std::optional<at::Tensor>(*tensor);
    };
    at::_fused_sgd_(
        list(parameters, n), list(gradients, n), list(momenta, momentum == 0.0 ? 0 : n),
        /*weight_decay=*/0.0, momentum, learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
        /*maximize=*/false, first_step, optional(scale), optional(found_inf));
  });
}

int vf_unscale_(Handles gradients, size_t n, at::Tensor* found_inf, const at::Tensor* inverse) {
  return guarded([&] {
    at::_amp_foreach_non_finite_check_and_unscale_(list(gradients, n), *found_inf, *inverse);
  });
}
}
