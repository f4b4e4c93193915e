#include <memory>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include "conformance/executor_suite.hpp"
#include "libtorch/executor.hpp"
#include "libtorch/layers/builtin.hpp"

using namespace troupe::mp;

namespace {

std::unique_ptr<StageExecutor> on_cpu() {
  auto layers = std::make_shared<libtorch::LayerKinds>();
  if (!libtorch::add_builtin_layers(*layers).ok()) throw std::runtime_error("no layers");
  return std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), std::move(layers));
}

}  // namespace

TROUPE_EXECUTOR_CONFORMANCE(libtorch_executor, on_cpu)
