#include "libtorch/layer_libraries.hpp"

#include <dlfcn.h>

#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include "troupe/model_parallel/layer_library.hpp"

namespace troupe::mp::libtorch {
namespace {

namespace fs = std::filesystem;

constexpr const char* entry_name = "troupe_layer_library";
constexpr const char* rebuild = "rebuild it against this version of Troupe";

std::string place_of(const std::string& name) { return "layer library \"" + name + "\""; }

Result<fs::path> find_library(const std::string& name, const LayerLibraries& libraries) {
  std::string searched;
  for (const auto& directory : libraries.directories) {
    fs::path file = fs::path(directory) / (name + ".so");
    std::error_code ignored;  // a directory that is not there holds no libraries
    if (fs::is_regular_file(file, ignored)) return file;
    searched += (searched.empty() ? "" : ", ") + directory;
  }
  return bad_input(place_of(name), "no " + name + ".so in: " + searched,
                   "put it into one of these directories on this node, or add its own to "
                   "TROUPE_PLUGIN_PATH or to plugin_directories in the node file");
}

/// Opens the library and checks what its entry function returns.
Result<const LayerLibrary*> open_library(const fs::path& file) {
  // RTLD_LOCAL: two libraries may each bring a symbol of the same name. The handle is kept for
  // ever: layers, and functions in LibTorch's graphs, live as long as the process.
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return bad_input(file.string(),
                     "the layer library cannot be loaded: " +
                         std::string(reason != nullptr ? reason : "no reason given"),
                     rebuild);
  }
  using Entry = const LayerLibrary* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, entry_name));
  if (entry == nullptr)
    return bad_input(file.string(),
                     std::string("not a layer library: no entry function \"") + entry_name + "\"",
                     "define it with TROUPE_LAYER_LIBRARY");
  const LayerLibrary* library = entry();
  // Nothing behind the version may be read before it is known to be ours.
  if (library->abi_version != layer_abi_version)
    return bad_input(file.string(),
                     "built for layer ABI " + std::to_string(library->abi_version) +
                         ", this process has " + std::to_string(layer_abi_version),
                     rebuild);
  return library;
}

/// The kinds with the name of the library that adds to them.
class LibraryRegistry final : public LayerRegistry {
 public:
  LibraryRegistry(LayerKinds& kinds, const std::string& library)
      : kinds_(kinds), library_(library) {}

  Result<void> add(const std::string& kind, Factory factory) override {
    return kinds_.add_from(library_, kind, std::move(factory));
  }

 private:
  LayerKinds& kinds_;
  const std::string& library_;
};

Result<void> add_library(const std::string& name, const LayerLibraries& libraries,
                         LayerKinds& kinds) {
  TROUPE_ASSIGN(const fs::path file, find_library(name, libraries));
  TROUPE_ASSIGN(const LayerLibrary* library, open_library(file));
  LibraryRegistry registry(kinds, name);
  try {
    return library->add_layers(registry);
  } catch (const std::exception& exception) {
    return bad_input(file.string(),
                     std::string("the layer library added no layers: ") + exception.what());
  }
}

}  // namespace

Result<void> add_layer_libraries(const LayerLibraries& libraries, LayerKinds& kinds) {
  LayerKinds all = kinds;
  for (const auto& name : libraries.names) TROUPE_TRY(add_library(name, libraries, all));
  kinds = std::move(all);
  return {};
}

}  // namespace troupe::mp::libtorch
