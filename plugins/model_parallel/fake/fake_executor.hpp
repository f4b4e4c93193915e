#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/value_ref.hpp"
#include "fake/fake_layer.hpp"
#include "fake/fake_memory.hpp"
#include "troupe/model_parallel/executor.hpp"

namespace troupe::mp {

/// Drives the protocol without an arithmetic library: what it computes is digests (see FakeLayer),
/// the same ones wherever the model is cut. Completes every call before it returns.
class FakeExecutor : public StageExecutor {
 public:
  explicit FakeExecutor(std::unique_ptr<FakeMemory> memory);

  Result<void> initialise(const v1::StageConfig& config) override;
  runtime::v1::NumericFingerprint fingerprint() const override;
  void forward(ForwardTask task, Completion<ForwardOutcome> done) override;
  void backward(BackwardTask task, Completion<BackwardOutcome> done) override;
  void summarise_gradients(Completion<GradientSummary> done) override;
  void update(StepUpdate update, Completion<void> done) override;
  void export_state(Completion<std::vector<NamedTensor>> done) override;
  void import_state(std::vector<NamedTensor> tensors, Completion<void> done) override;
  void discard_all() override;

 private:
  /// A value between layers, in the executor's memory.
  struct KeptValue {
    std::shared_ptr<const StoredTensor> tensor;  // null: absent
    bool requires_grad = false;
  };
  using KeptValues = std::map<ValueKey, KeptValue>;

  KeptValue keep(const Value& value);
  static Value load(const KeptValue& value);
  static std::vector<Value> read(const KeptValues& values, const v1::Layer& layer);

  /// Runs `operation` unless an earlier one failed, and remembers its failure.
  template <class T, class Operation>
  void complete(const Completion<T>& done, const Operation& operation);

  Result<ForwardOutcome> run_forward(const ForwardTask& task);
  Result<BackwardOutcome> run_backward(const BackwardTask& task);
  Result<void> check_import(const std::vector<NamedTensor>& tensors) const;

  std::unique_ptr<FakeMemory> memory_;
  v1::StageConfig config_;
  std::vector<FakeLayer> layers_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, KeptValues> live_;  // by step and index
  bool failed_ = false;
};

/// Keeps its tensors in host memory.
std::unique_ptr<StageExecutor> make_fake_executor();

/// Keeps its tensors in a memory of its own, counted in `use`.
std::unique_ptr<StageExecutor> make_fake_device_executor(std::shared_ptr<FakeDeviceUse> use);

}  // namespace troupe::mp
