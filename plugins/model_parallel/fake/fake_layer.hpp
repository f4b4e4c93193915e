#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fake/fake_memory.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// One layer of a fake executor. Outputs, gradients and new weights are digests of everything that
/// they should depend on, so that an operation left out, done twice, out of order or with the wrong
/// operands shows in the final weights. Any kind of layer is accepted; kinds that begin with
/// "loss." have a loss instead of outputs.
///
/// Attributes, all optional:
///   output_elements     elements of one sample of each output; default: out_features, or the
///                       shape of the first input
///   int64_slot          this output is int64
///   absent_slot         this output is absent
///   no_input_gradients  1: backward gives no gradients for the inputs
///   library_version     the executor reports a library of this version
///   overflow_at_step    the gradients of this layer's parameters are infinite in this step
///   fail_at_step, fail_at_micro_batch (default 0), fail_in_backward (default 0)
///                       an injected failure
class FakeLayer {
 public:
  /// `dtype` is the type of outputs, `master` that of weights.
  FakeLayer(const v1::Layer& config, std::uint64_t seed, v1::DType dtype, v1::DType master,
            FakeMemory& memory);

  const v1::Layer& config() const { return config_; }

  struct Forward {
    std::vector<Value> outputs;
    std::optional<LossValue> loss;
  };
  /// `again`: it has run before, so it changes no buffers.
  Result<Forward> forward(const MicroBatch& micro_batch, const std::vector<Value>& inputs,
                          bool again);

  /// Gradients of the inputs, absent where an input needs none; adds to those of the parameters.
  Result<std::vector<Value>> backward(const MicroBatch& micro_batch,
                                      const std::vector<Value>& inputs,
                                      const std::vector<Value>& output_gradients,
                                      double loss_scale);

  /// Squared norm of each parameter's gradient.
  std::vector<double> squared_norms() const;

  /// Applies the gradients to the parameters, unless `frozen`, and clears them.
  void update(const StepUpdate& update, bool frozen);
  void clear_gradients();

  /// A parameter or buffer, wherever it is kept.
  struct Tensor {
    v1::Parameter config;
    bool buffer = false;
    std::shared_ptr<const StoredTensor> stored;
    std::optional<std::uint64_t> gradient;  // digest of all contributions, in order
    std::vector<std::uint64_t> tied;        // gradients of the parameters that share it, in order

    /// Of all uses.
    std::optional<std::uint64_t> whole_gradient() const;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Null if this layer has no such tensor.
  const Tensor* find(const std::string& name) const;
  Tensor* find(const std::string& name);
  /// Converts the tensor to the type of the one that it replaces, if there is one of this name. The
  /// shape must fit and the type be one that can be imported.
  Result<void> replace(const std::string& name, const HostTensor& tensor);

  /// The attribute, if it is set.
  std::optional<int> library_version() const;

 private:
  double attribute(const std::string& name, double fallback) const;
  bool is_loss() const;
  Result<void> inject_failure(const MicroBatch& micro_batch, bool backward) const;
  Shape output_shape(const MicroBatch& micro_batch, const std::vector<Value>& inputs) const;
  std::uint64_t weights_digest(bool buffers) const;
  void update_buffers(std::uint64_t digest);

  v1::Layer config_;
  v1::DType dtype_;
  FakeMemory& memory_;
  bool overflowed_ = false;      // since the last update
  std::vector<Tensor> tensors_;  // parameters, then buffers
};

}  // namespace troupe::mp
