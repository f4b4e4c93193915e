#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libtorch/activations.hpp"
#include "libtorch/layer_kinds.hpp"
#include "libtorch/memory_meter.hpp"
#include "libtorch/optimizers/optimizer.hpp"
#include "libtorch/stage_model.hpp"
#include "troupe/model_parallel/executor.hpp"

namespace troupe::mp::libtorch {

/// StageExecutor on LibTorch. It computes in the calling thread and calls completions before it
/// returns, so its caller must be a thread that may block. This is the one place where exceptions
/// of LibTorch and of layers are caught.
class LibtorchExecutor final : public StageExecutor {
 public:
  LibtorchExecutor(at::Device device, std::shared_ptr<const LayerKinds> layers);

  Result<void> initialise(const v1::StageConfig& config) override;
  runtime::v1::NumericFingerprint fingerprint() const override;
  void forward(ForwardTask task, Completion<ForwardOutcome> done) override;
  void backward(BackwardTask task, Completion<BackwardOutcome> done) override;
  void take_tied_gradients(std::vector<Value> gradients, Completion<void> done) override;
  void summarise_gradients(Completion<GradientSummary> done) override;
  void update(StepUpdate update, Completion<void> done) override;
  void export_tied_values(Completion<std::vector<Value>> done) override;
  void export_state(Completion<std::vector<NamedTensor>> done) override;
  void import_state(std::vector<NamedTensor> tensors, Completion<void> done) override;
  void discard_all() override;

  /// The gradients accumulated so far, for those parameters that have one: for tests.
  std::vector<NamedTensor> gradients();

 private:
  Result<void> build(const v1::StageConfig& config);
  Result<ForwardOutcome> run_forward(const ForwardTask& task);
  Result<BackwardOutcome> run_backward(const BackwardTask& task);
  Result<void> keep_tied_gradients(const std::vector<Value>& gradients);
  /// Makes every entry's gradient complete, with those of tied parameters.
  Result<void> complete_gradients();
  void clear_gradients();
  /// Bytes held at most during the present operation, by it and by live micro-batches.
  std::uint64_t peak_bytes() const;
  Result<void> check_import(const std::vector<NamedTensor>& tensors) const;
  StateEntry* find_state(const std::string& name);

  /// `body()`, with the thread's LibTorch settings in place and exceptions as errors. They name
  /// the operation and the layer; stage, step and micro-batch are the caller's to add.
  template <class Body>
  auto guarded(std::string where, Body&& body) -> decltype(body());

  /// A micro-batch between its forward and its backward.
  struct Live {
    Activations activations;
    std::int64_t held_bytes = 0;
  };

  at::Device device_;
  std::shared_ptr<const LayerKinds> registry_;
  Progress progress_;
  std::uint32_t stage_ = 0;
  int threads_ = 1;
  StageModel model_;
  std::vector<at::ScalarType> inbound_types_;   ///< of floating-point values, by inbound
  std::vector<at::ScalarType> gradient_types_;  ///< in which their gradients are sent
  std::vector<at::ScalarType> outbound_types_;  ///< in which values are sent, by outbound
  /// Gradients of uses of tied parameters in other stages; empty: none have come.
  std::vector<at::Tensor> tied_gradients_;
  bool tied_summed_ = false;  ///< since the last of them, or the last backward
  std::shared_ptr<MemoryMeter> meter_ = std::make_shared<MemoryMeter>();
  std::int64_t held_bytes_ = 0;           ///< that live micro-batches took, as measured
  std::unique_ptr<Optimizer> optimizer_;  ///< null: the stage does not train
  std::map<std::pair<std::uint64_t, std::uint32_t>, Live> live_;  ///< by step, micro-batch
};

}  // namespace troupe::mp::libtorch
