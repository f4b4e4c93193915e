#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "libtorch/stage_model.hpp"

namespace troupe::mp::libtorch {

/// A value at a layer boundary: detached; an undefined tensor is an absent value.
struct Boundary {
  at::Tensor tensor;
  bool requires_grad = false;
};

/// One micro-batch on its way through the layers of a stage, and what its backward needs: for each
/// layer its inputs as leaves of a graph of its own, and its outputs.
///
/// At every layer boundary values are detached, floating-point ones converted to the stage's type,
/// and brought to a declared layout: values in the forward to that of the layer that reads them,
/// gradients in the backward to that of the layer that wrote the value. This happens whether or not
/// the boundary is one of a stage, and regardless of the order in which the other layer left them:
/// so a result does not depend on the cut. What no other order would change, such as sums of
/// gradients, takes any.
///
/// Gradients of a value with several readers are added from the last reader to the first, which is
/// the order in which backward meets them: g1 + (g2 + (g3 + ...)). What arrives from another stage
/// (`output_gradients`) is the sum over all readers in later stages and comes first: so the sum has
/// the same parentheses wherever the model is cut. A value that came from another stage and is read
/// by a later one too passes through here, and its gradient with it.
class Activations {
 public:
  Activations(StageModel& model, const MicroBatch& micro_batch)
      : model_(&model), micro_batch_(micro_batch) {}

  struct Outcome {
    std::vector<Boundary> outputs;  ///< one for each outbound value
    bool has_loss = false;
    LossValue loss;
  };

  /// Runs the layers in order on the inbound values. Inputs and outputs of the layers are kept for
  /// KIND_TRAIN only.
  Outcome forward(const std::vector<Boundary>& inputs, Progress& progress);

  /// Runs the layers backwards once, releasing each as soon as it is done, and adds to the
  /// parameters' gradients. Returns a gradient for each inbound value, undefined where there is
  /// none.
  std::vector<at::Tensor> backward(const std::vector<at::Tensor>& output_gradients,
                                   Progress& progress);

  /// Bytes of all boundary values kept: those a stage is asked to bound. What LibTorch saves
  /// inside a layer comes on top.
  std::uint64_t live_bytes() const { return live_bytes_; }

 private:
  struct Record {
    std::vector<at::Tensor> leaves;
    std::vector<at::Tensor> outputs;
  };

  Record run_layer(const WiredLayer& wired, const std::vector<Boundary>& values) const;
  void read_loss(const WiredLayer& wired, const Record& record, Outcome& outcome) const;
  void run_layer_backward(const WiredLayer& wired, Record record,
                          std::vector<at::Tensor>& gradients) const;

  StageModel* model_;
  MicroBatch micro_batch_;
  std::vector<Record> records_;
  std::uint64_t live_bytes_ = 0;
};

}  // namespace troupe::mp::libtorch
