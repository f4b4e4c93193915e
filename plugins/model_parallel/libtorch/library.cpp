// Entry point of troupe_mp_libtorch.so, which troupe_mp loads with its first real stage.
#include <memory>
#include <string>

#include "libtorch/device.hpp"
#include "libtorch/executor.hpp"
#include "libtorch/layer_libraries.hpp"
#include "libtorch/layers/builtin.hpp"
#include "troupe/plugin.hpp"

namespace troupe::mp {
namespace {

Result<std::unique_ptr<StageExecutor>> create(const std::string& device,
                                              const LayerLibraries& libraries) {
  TROUPE_ASSIGN(const at::Device found, libtorch::find_device(device));
  auto layers = std::make_shared<libtorch::LayerKinds>();
  TROUPE_TRY(libtorch::add_builtin_layers(*layers));
  TROUPE_TRY(libtorch::add_layer_libraries(libraries, *layers));
  return std::unique_ptr<StageExecutor>(
      std::make_unique<libtorch::LibtorchExecutor>(found, std::move(layers)));
}

constexpr ExecutorLibrary library{plugin_abi_version, &create};

}  // namespace
}  // namespace troupe::mp

extern "C" TROUPE_API const troupe::mp::ExecutorLibrary* troupe_mp_executors() {
  return &troupe::mp::library;
}
