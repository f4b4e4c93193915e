#pragma once

#include <cstdint>

#include "troupe/api.hpp"
#include "troupe/model_parallel/layer.hpp"
#include "troupe/result.hpp"

/// Libraries of layers and losses outside the plugin. A job names them in `layer_libraries`; each
/// worker loads `NAME.so` from its plugin directories, and from nowhere else, when it makes an
/// executor. The driver never loads them.

namespace troupe::mp::libtorch {

/// Grows whenever anything in the headers that layer libraries are compiled against changes.
inline constexpr std::uint32_t layer_abi_version = 1;

/// What the entry function of a layer library returns. Plain data, so that a library built against
/// other headers can still be recognised and refused.
struct LayerLibrary {
  std::uint32_t abi_version;  ///< layer_abi_version
  /// Adds the library's kinds; those of losses begin with "loss.". Called for each executor, so it
  /// may be called several times and from several threads. An error ends the job.
  Result<void> (*add_layers)(LayerRegistry& registry);
};

}  // namespace troupe::mp::libtorch

/// Once in every layer library, outside of namespaces: TROUPE_LAYER_LIBRARY(my::add_layers).
#define TROUPE_LAYER_LIBRARY(add_layers)                                                     \
  extern "C" TROUPE_API const ::troupe::mp::libtorch::LayerLibrary* troupe_layer_library() { \
    static constexpr ::troupe::mp::libtorch::LayerLibrary library{                           \
        ::troupe::mp::libtorch::layer_abi_version, add_layers};                              \
    return &library;                                                                         \
  }                                                                                          \
  static_assert(true, "for the semicolon")
