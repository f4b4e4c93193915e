#include "libtorch/autocast.hpp"

#include <ATen/autocast_mode.h>

namespace troupe::mp::libtorch {
namespace {

namespace autocast = at::autocast;

void set(bool cuda, bool enabled, at::ScalarType type) {
  if (cuda) {
    autocast::set_autocast_gpu_dtype(type);
    autocast::set_enabled(enabled);
  } else {
    autocast::set_autocast_cpu_dtype(type);
    autocast::set_cpu_enabled(enabled);
  }
}

}  // namespace

Autocast::Autocast(at::Device device, at::ScalarType type)
    : cuda_(device.is_cuda()),
      enabled_(cuda_ ? autocast::is_enabled() : autocast::is_cpu_enabled()),
      cached_(autocast::is_autocast_cache_enabled()),
      type_(cuda_ ? autocast::get_autocast_gpu_dtype() : autocast::get_autocast_cpu_dtype()) {
  autocast::set_autocast_cache_enabled(false);
  set(cuda_, true, type);
}

Autocast::~Autocast() {
  set(cuda_, enabled_, type_);
  autocast::set_autocast_cache_enabled(cached_);
}

}  // namespace troupe::mp::libtorch
