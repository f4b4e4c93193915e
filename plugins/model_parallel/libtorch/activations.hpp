#pragma once

#include <cstdint>
#include <map>
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
/// A layer computes on inputs of the weights' type, which in mixed precision hold no more digits
/// than the boundary let through, and under autocast. The loss is computed in the weights' type.
///
/// Of a segment of layers that are recomputed only the values it reads from outside are kept; the
/// backward runs it forward once more, with buffers restored afterwards.
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
                                   double loss_scale, Progress& progress);

  /// Bytes of all boundary values kept: those a stage is asked to bound. What LibTorch saves
  /// inside a layer comes on top.
  std::uint64_t live_bytes() const { return live_bytes_; }

 private:
  struct Record {
    std::vector<at::Tensor> leaves;
    std::vector<at::Tensor> outputs;
  };

  /// The layer's inputs must be among `values`; its outputs join them.
  Record run_layer(const WiredLayer& wired, std::vector<Boundary>& values, bool again) const;
  std::vector<at::Tensor> compute(const WiredLayer& wired, const std::vector<at::Tensor>& leaves,
                                  bool again) const;
  /// Keeps what a layer of a segment reads from outside of it.
  void keep_inputs(const WiredLayer& wired, const std::vector<Boundary>& values);
  /// Runs the segment that ends with layer `last` forward again and restores its records.
  void recompute(std::size_t last, Progress& progress);
  at::Tensor rounded(std::size_t value, const at::Tensor& tensor) const;
  void read_loss(const WiredLayer& wired, const Record& record, Outcome& outcome) const;
  void run_layer_backward(const WiredLayer& wired, Record record, double loss_scale,
                          std::vector<at::Tensor>& gradients) const;

  StageModel* model_;
  MicroBatch micro_batch_;
  std::vector<Record> records_;  ///< by layer; empty while not kept
  std::map<std::size_t, std::map<std::size_t, Boundary>> segment_inputs_;  ///< by segment, value
  std::uint64_t live_bytes_ = 0;
};

}  // namespace troupe::mp::libtorch
