#pragma once

#include <map>
#include <memory>
#include <string>

#include "troupe/model_parallel/layer.hpp"

namespace troupe::mp::libtorch {

/// Kinds of layers by name.
class LayerKinds final : public LayerRegistry {
 public:
  Result<void> add(const std::string& kind, Factory factory) override;

  /// An error naming the known kinds if there is no such kind. May throw what the factory throws.
  Result<std::unique_ptr<Layer>> create(const LayerSetup& setup) const;

 private:
  std::map<std::string, Factory> factories_;
};

}  // namespace troupe::mp::libtorch
