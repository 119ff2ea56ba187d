// Autocast, by the calls that are not deprecated.
#include "shim.h"

#include <ATen/autocast_mode.h>

using namespace vramfit;

extern "C" {

// Enters a region for `device` (a c10::DeviceType); `was_enabled` and `was_dtype` are for leaving it.
int vf_autocast_enter(
    int8_t device, bool enabled, int8_t dtype, bool* was_enabled, int8_t* was_dtype) {
  return guarded([&] {
    const auto kind = static_cast<at::DeviceType>(device);
    *was_enabled = at::autocast::is_autocast_enabled(kind);
    *was_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(kind));
    at::autocast::set_autocast_enabled(kind, enabled);
    at::autocast::set_autocast_dtype(kind, static_cast<at::ScalarType>(dtype));
    at::autocast::increment_nesting();
  });
}

// Lets go of the cast copies of weights that the region has made so far.
int vf_autocast_forget_casts() {
  return guarded([] { at::autocast::clear_cache(); });
}

int vf_autocast_leave(int8_t device, bool was_enabled, int8_t was_dtype) {
  return guarded([&] {
    const auto kind = static_cast<at::DeviceType>(device);
    // The cast copies of the weights live as long as the outermost region.
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    at::autocast::set_autocast_enabled(kind, was_enabled);
    at::autocast::set_autocast_dtype(kind, static_cast<at::ScalarType>(was_dtype));
  });
}
}
