#include <dlfcn.h>

#include <filesystem>

#include "fake/fake_executor.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/plugin.hpp"

namespace troupe::mp {
namespace {

constexpr const char* library_name = "troupe_mp_libtorch.so";
constexpr const char* entry_name = "troupe_mp_executors";

/// Loads the library of real executors; it stays loaded, and further calls find it loaded.
Result<const ExecutorLibrary*> load_library(const std::string& device,
                                            const std::string& plugin_directory) {
  const auto path = std::filesystem::path(plugin_directory) / library_name;
  if (!std::filesystem::exists(path))
    return bad_input("device \"" + device + "\"",
                     "this build has no LibTorch executor (" + path.string() + " is not there)",
                     "build with TROUPE_LIBTORCH=ON, or use the device \"fake\"");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return internal_error(path.string(), reason != nullptr ? reason : "cannot be loaded");
  }
  using Entry = const ExecutorLibrary* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, entry_name));
  if (entry == nullptr)
    return internal_error(path.string(), std::string("has no function ") + entry_name);
  const auto* executors = entry();
  if (executors->abi_version != plugin_abi_version)
    return internal_error(path.string(),
                          "is of ABI version " + std::to_string(executors->abi_version) +
                              ", this build needs " + std::to_string(plugin_abi_version),
                          "install plugin and executor library of one build");
  return executors;
}

}  // namespace

StageExecutor::~StageExecutor() = default;

Result<std::unique_ptr<StageExecutor>> create_executor(const std::string& device,
                                                       const std::string& plugin_directory,
                                                       const LayerLibraries& libraries) {
  const bool fake = device == "fake" || device == "fake-device";
  if (fake && !libraries.names.empty())
    return bad_input("device \"" + device + "\"", "has no use for layer libraries",
                     "use a real device, or leave layer_libraries out");
  if (device == "fake") return make_fake_executor();
  if (fake) return make_fake_device_executor(std::make_shared<FakeDeviceUse>());
  TROUPE_ASSIGN(const ExecutorLibrary* executors, load_library(device, plugin_directory));
  return executors->create(device, libraries);
}

}  // namespace troupe::mp
