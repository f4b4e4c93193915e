#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libtorch/activations.hpp"
#include "libtorch/layer.hpp"
#include "libtorch/optimizers/optimizer.hpp"
#include "libtorch/stage_model.hpp"
#include "troupe/model_parallel/executor.hpp"

namespace troupe::mp::libtorch {

/// StageExecutor on LibTorch. It computes in the calling thread and calls completions before it
/// returns, so its caller must be a thread that may block. This is the one place where exceptions
/// of LibTorch and of layers are caught.
class LibtorchExecutor final : public StageExecutor {
 public:
  LibtorchExecutor(at::Device device, std::shared_ptr<const LayerRegistry> layers);

  Result<void> initialise(const v1::StageConfig& config) override;
  runtime::v1::NumericFingerprint fingerprint() const override;
  void forward(ForwardTask task, Completion<ForwardOutcome> done) override;
  void backward(BackwardTask task, Completion<BackwardOutcome> done) override;
  void summarise_gradients(Completion<GradientSummary> done) override;
  void update(StepUpdate update, Completion<void> done) override;
  void export_state(Completion<std::vector<NamedTensor>> done) override;
  void import_state(std::vector<NamedTensor> tensors, Completion<void> done) override;
  void discard_all() override;

  /// The gradients accumulated so far, for those parameters that have one: for tests.
  std::vector<NamedTensor> gradients();

 private:
  Result<void> build(const v1::StageConfig& config);
  Result<ForwardOutcome> run_forward(const ForwardTask& task);
  Result<BackwardOutcome> run_backward(const BackwardTask& task);
  Result<void> check_import(const std::vector<NamedTensor>& tensors) const;
  StateEntry* find_state(const std::string& name);

  /// `body()`, with the thread's LibTorch settings in place and exceptions as errors. They name
  /// the operation and the layer; stage, step and micro-batch are the caller's to add.
  template <class Body>
  auto guarded(std::string where, Body&& body) -> decltype(body());

  at::Device device_;
  std::shared_ptr<const LayerRegistry> registry_;
  Progress progress_;
  std::uint32_t stage_ = 0;
  int threads_ = 1;
  StageModel model_;
  std::unique_ptr<Optimizer> optimizer_;  ///< null: the stage does not train
  std::map<std::pair<std::uint64_t, std::uint32_t>, Activations> live_;  ///< by step, micro-batch
};

}  // namespace troupe::mp::libtorch
