#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "libtorch/deferred_statistics.hpp"
#include "libtorch/layer_kinds.hpp"
#include "libtorch/memory_meter.hpp"
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
  bool tied = false;    ///< shares the tensor of another; updated and exported there
  at::Tensor tied_sum;  ///< of a parameter that others share: the gradients of all, once added

  /// What the optimizer applies.
  const at::Tensor& whole_gradient() const { return tied_sum.defined() ? tied_sum : gradient; }

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
  std::vector<std::size_t> buffers;     ///< into StageModel::buffers
  /// Layers that follow each other and are all recomputed are a segment: the number of its first
  /// layer. `none`: what this layer reads and writes is kept.
  std::size_t segment = static_cast<std::size_t>(-1);
};

/// A parameter of this stage that others share.
struct TiedParameter {
  std::size_t owner = 0;          ///< into StageModel::parameters
  std::vector<std::size_t> uses;  ///< the same, in layer order; `none`: in another stage
  bool shared_elsewhere = false;  ///< one of them is
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
  at::Device device = at::kCPU;
  at::ScalarType float_type = at::kFloat;   ///< of everything floating-point between layers
  at::ScalarType weight_type = at::kFloat;  ///< of weights, the loss, and fields of the batch
  /// By value: what it and its gradient are rounded to; Undefined: nothing.
  std::vector<at::ScalarType> wires;
  std::vector<std::size_t> writer;  ///< by value: the layer that makes it; inbound: none
  /// Counts what backwards allocate, but not gradients of weights; may be null.
  std::shared_ptr<MemoryMeter> meter;
  std::vector<TiedParameter> tied;       ///< of the config's `tied_weights`
  std::vector<std::size_t> tied_copies;  ///< parameters: each use in the config's `tied_copies`

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Creates layers and initial state on `device`. Errors name the layer, value or parameter;
  /// may throw what LibTorch throws, with the layer in `progress`.
  static Result<StageModel> build(const v1::StageConfig& config, const LayerKinds& registry,
                                  at::Device device, Progress& progress);

  /// Whether layers compute in a narrower type than that of the weights.
  bool mixed() const { return float_type != weight_type; }

  /// The segment that a value is made in and that alone reads it, so that it need not be kept;
  /// `none` if it is kept.
  std::size_t segment_of(std::size_t value) const;

  /// Adds up the gradients of all uses of each tied parameter, in layer order. `elsewhere` has the
  /// gradient of each use in another stage, undefined where there is none.
  void sum_tied_gradients(const std::vector<at::Tensor>& elsewhere);

  /// Fetches what layers accumulated themselves, so that every entry's gradient is complete.
  void collect_gradients();

  /// Drops every gradient.
  void clear_gradients();
};

}  // namespace troupe::mp::libtorch
