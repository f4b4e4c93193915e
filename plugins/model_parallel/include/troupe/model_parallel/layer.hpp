#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "troupe/api.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/random.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

/// How a kind of layer or loss is written: the plugin's own are, and those of libraries outside it.
/// The one public header, with layer_library.hpp, that needs LibTorch. All that a layer library
/// calls is inline here, virtual, or exported by troupe_mp.

namespace troupe::mp::libtorch {

class DeferredStatistics;

/// What a layer may know about the micro-batch it computes.
struct ForwardContext {
  bool training = false;  ///< batch statistics are taken and running ones follow them
  MicroBatch micro_batch;
  /// The backward runs this forward again, to have the activations it did not keep: results must
  /// be the same, and nothing may be remembered. Buffers are restored by the executor.
  bool recomputing = false;
  /// Gathers statistics until the step ends; null: running ones change at once. Of the plugin's own
  /// batch norm.
  DeferredStatistics* deferred = nullptr;
  std::uint64_t seed = 0;  ///< with the sample's index and the layer's name: the key of randomness

  /// The key of the random numbers (see random.hpp) that a layer draws for one sample: a function
  /// of (seed, step, index of the sample in the epoch, stream), not of the cut, the micro-batch or
  /// earlier calls, so that recomputing draws the same. `row` is the sample's place in the
  /// micro-batch. `stream` is unique in the model: the layer's name, with what is drawn where there
  /// are several things.
  std::uint64_t sample_key(const std::string& stream, std::uint32_t row) const {
    return mp::sample_key(seed, stream, micro_batch.step, micro_batch.first_sample + row);
  }
};

/// One layer: the unit of execution. It computes eagerly on LibTorch tensors; the executor cuts
/// the graph before and after it.
///
/// Thread: one. Errors: c10::Error (TORCH_CHECK) or any std::exception, which the executor turns
/// into an error naming the layer.
class TROUPE_API Layer {
 public:
  virtual ~Layer() = default;

  /// The order of elements in which the layer is given its inputs, and in the backward the
  /// gradients of its outputs. What it returns may be in any order. Constant.
  virtual at::MemoryFormat layout() const { return at::MemoryFormat::Contiguous; }

  /// Outputs from inputs, differentiable by LibTorch's autograd where gradients are wanted.
  /// An undefined tensor stands for an absent value, both ways. Inputs are shared with other
  /// layers and must not be modified. Must return as many values as the config's `outputs`;
  /// floating-point ones are converted to the stage's type.
  virtual std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                          const ForwardContext& context) = 0;

  /// A loss layer reads (outputs, targets) and returns one scalar, the mean over what counts in the
  /// micro-batch, and 0 where nothing does; backward starts from it. It is skipped in a prediction
  /// without targets.
  virtual bool is_loss() const { return false; }

  /// A gradient that the layer accumulated itself, and the parameter it belongs to.
  struct OwnGradient {
    at::Tensor parameter;
    at::Tensor gradient;
  };

  /// Gradients that do not travel through autograd: accumulated by the layer in the order of the
  /// backward calls since they were last taken or discarded.
  virtual std::vector<OwnGradient> take_gradients() { return {}; }
  virtual void discard_gradients() {}

  /// Of a loss layer, in evaluation: how many of those that count in the loss (samples, or targets
  /// that are not ignored) are classified correctly; 0 when that means nothing.
  virtual std::uint64_t count_correct(const std::vector<at::Tensor>& inputs) const { return 0; }
};

/// What a layer is made from: its config and its parameters and buffers. The tensors stay the
/// layer's: optimizer steps and imports change them in place. Those that are missing or do not
/// fit are a c10::Error.
class LayerSetup {
 public:
  /// `tensors` by their full names.
  LayerSetup(const v1::Layer& config, const std::map<std::string, at::Tensor>& tensors)
      : config_(config) {
    const std::string prefix = config.name() + ".";
    for (const auto& [name, tensor] : tensors) {
      const bool prefixed = name.compare(0, prefix.size(), prefix) == 0;
      tensors_.emplace(prefixed ? name.substr(prefix.size()) : name, tensor);
    }
  }

  const v1::Layer& config() const { return config_; }

  /// A parameter or buffer by what follows "<layer name>." in its name, or by its full name.
  at::Tensor tensor(const std::string& suffix) const {
    const auto found = tensors_.find(suffix);
    TORCH_CHECK(found != tensors_.end(), "a layer of kind '", config_.kind(),
                "' needs a parameter or buffer '", suffix, "'");
    return found->second;
  }

  bool has(const std::string& suffix) const { return tensors_.count(suffix) != 0; }

  double attribute(const std::string& name, double fallback) const {
    const auto found = config_.attributes().find(name);
    return found == config_.attributes().end() ? fallback : found->second;
  }

 private:
  v1::Layer config_;
  std::map<std::string, at::Tensor> tensors_;
};

/// What kinds of layers are added to.
class TROUPE_API LayerRegistry {
 public:
  /// Makes a layer, in the thread that will use it. Errors as the layer's.
  using Factory = std::function<std::unique_ptr<Layer>(const LayerSetup&)>;

  virtual ~LayerRegistry() = default;

  /// An error if the kind exists already. The factory lives as long as the process.
  virtual Result<void> add(const std::string& kind, Factory factory) = 0;
};

}  // namespace troupe::mp::libtorch
