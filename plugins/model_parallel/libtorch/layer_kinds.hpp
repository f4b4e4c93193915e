#pragma once

#include <map>
#include <memory>
#include <string>

#include "troupe/model_parallel/layer.hpp"

namespace troupe::mp::libtorch {

/// Kinds of layers by name.
class LayerKinds final : public LayerRegistry {
 public:
  /// Adds a kind of the plugin's own.
  Result<void> add(const std::string& kind, Factory factory) override;

  /// Adds a kind of this library. If it exists already the error (bad_input) names both libraries.
  Result<void> add_from(const std::string& library, const std::string& kind, Factory factory);

  /// An error naming the known kinds if there is no such kind. A kind is a loss if and only if its
  /// name says so. May throw what the factory throws.
  Result<std::unique_ptr<Layer>> create(const LayerSetup& setup) const;

 private:
  struct Kind {
    Factory factory;
    std::string library;  ///< empty: the plugin itself
  };

  std::map<std::string, Kind> kinds_;
};

}  // namespace troupe::mp::libtorch
