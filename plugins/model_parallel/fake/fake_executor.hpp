#pragma once

#include <map>
#include <memory>
#include <optional>
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
  void take_tied_gradients(std::vector<Value> gradients, Completion<void> done) override;
  void summarise_gradients(Completion<GradientSummary> done) override;
  void update(StepUpdate update, Completion<void> done) override;
  void export_tied_values(Completion<std::vector<Value>> done) override;
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
  /// Runs a layer, and puts its outputs beside its inputs.
  Result<std::optional<LossValue>> run_layer(FakeLayer& layer, const MicroBatch& micro_batch,
                                             KeptValues& values, bool again);
  /// Of a value: the type it is rounded to.
  v1::DType wire_of(const ValueKey& key) const;
  /// Drops what only layers read that are recomputed.
  void drop_recomputed(KeptValues& values) const;
  bool recomputed(std::size_t layer) const;

  FakeLayer::Tensor& tensor(const std::string& name);
  /// Adds the gradients of all uses to the weights they are tied to.
  Result<void> sum_tied_gradients();
  /// Lets parameters that share values here have those of `name`.
  void share_values(const std::string& name);
  Result<BackwardOutcome> run_backward(const BackwardTask& task);
  Result<void> check_import(const std::vector<NamedTensor>& tensors) const;

  std::unique_ptr<FakeMemory> memory_;
  v1::StageConfig config_;
  v1::DType dtype_ = v1::DTYPE_FLOAT32;  // between layers
  std::vector<FakeLayer> layers_;
  std::map<ValueKey, v1::DType> wires_;
  std::vector<Value> tied_gradients_;                                   // as other stages sent them
  std::map<std::pair<std::uint64_t, std::uint32_t>, KeptValues> live_;  // by step and index
  bool failed_ = false;
};

/// Keeps its tensors in host memory.
std::unique_ptr<StageExecutor> make_fake_executor();

/// Keeps its tensors in a memory of its own, counted in `use`.
std::unique_ptr<StageExecutor> make_fake_device_executor(std::shared_ptr<FakeDeviceUse> use);

}  // namespace troupe::mp
