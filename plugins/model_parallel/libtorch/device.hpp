#pragma once

#include <string>

#include <c10/core/Device.h>

#include "troupe/result.hpp"

namespace troupe::mp::libtorch {

/// The device called `name` ("cpu", "cuda", "cuda:1"), if this LibTorch and this machine have it;
/// otherwise an error that lists those there are.
Result<at::Device> find_device(const std::string& name);

}  // namespace troupe::mp::libtorch
