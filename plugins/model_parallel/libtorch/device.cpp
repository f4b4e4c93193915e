#include "libtorch/device.hpp"

#include <vector>

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

namespace troupe::mp::libtorch {
namespace {

std::vector<at::Device> devices() {
  std::vector<at::Device> found{at::Device(at::kCPU)};
  if (at::hasCUDA()) {
    const int count = at::detail::getCUDAHooks().getNumGPUs();
    for (int i = 0; i < count; ++i) found.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(i));
  }
  return found;
}

}  // namespace

Result<at::Device> find_device(const std::string& name) {
  std::string known;
  for (const auto& device : devices()) {
    const std::string text = device.str();
    if (text == name || (name == "cuda" && text == "cuda:0")) return device;
    known += (known.empty() ? "" : ", ") + text;
  }
  return bad_input("device '" + name + "'", "there is no such device",
                   "this LibTorch has: " + known);
}

}  // namespace troupe::mp::libtorch
