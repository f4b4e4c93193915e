#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "libtorch/deferred_statistics.hpp"
#include "libtorch/layer.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"

namespace troupe::mp::libtorch {

/// The layer at work, for the text of an error that comes out of it.
struct Progress {
  const std::string* layer = nullptr;
};

/// A parameter or buffer.
struct StateEntry {
  std::string name;
  at::Tensor tensor;    ///< row-major; changed in place only
  at::Tensor gradient;  ///< of a parameter; undefined until a backward reached it in this step

  /// Adds in place; the first gradient is taken over where nobody else holds it.
  void add_gradient(at::Tensor addend);
};

/// A layer with its wiring. Numbers of values index a table with one entry for every inbound value
/// and every layer output of the stage.
struct WiredLayer {
  std::string name;
  std::unique_ptr<Layer> layer;
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
  std::vector<std::size_t> parameters;  ///< into StageModel::parameters
};

/// The layers of one stage and their state.
struct StageModel {
  std::vector<WiredLayer> layers;
  std::vector<StateEntry> parameters;  ///< in layer order
  std::vector<StateEntry> buffers;
  std::vector<std::size_t> inbound;      ///< value of each `inbound` of the config
  std::vector<std::size_t> outbound;     ///< value of each `outbound` of the config
  std::vector<std::size_t> last_reader;  ///< by value: the last layer that reads it; outbound: none
  std::uint64_t seed = 0;
  bool frozen = false;  ///< parameters get no gradients
  /// Null: running statistics change with each micro-batch.
  std::unique_ptr<DeferredStatistics> deferred;
  at::ScalarType float_type = at::kFloat;  ///< of everything floating-point between layers

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Creates layers and initial state on `device`. Errors name the layer, value or parameter;
  /// may throw what LibTorch throws, with the layer in `progress`.
  static Result<StageModel> build(const v1::StageConfig& config, const LayerRegistry& registry,
                                  at::Device device, Progress& progress);

  /// Fetches what layers accumulated themselves, so that every entry's gradient is complete.
  void collect_gradients();

  /// Drops every gradient.
  void clear_gradients();
};

}  // namespace troupe::mp::libtorch
