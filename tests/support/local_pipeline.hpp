#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/gradient_norm.hpp"
#include "core/plan.hpp"
#include "support/tied_exchange.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/host_tensor.hpp"

namespace troupe::mp::test {

/// The executors of a plan's stages, driven by hand in one thread, without any actor: what the
/// actors do between executors, in its simplest form. Errors are exceptions here, so that a test
/// stops at the first.
class LocalPipeline {
 public:
  using Factory = std::function<std::unique_ptr<StageExecutor>(const v1::StageConfig&)>;

  LocalPipeline(const Plan& plan, const Factory& factory);

  /// Fields of a micro-batch, by name.
  using Fields = std::map<std::string, Value>;

  struct Forward {
    std::map<std::string, Value> outputs;  ///< of the last stage, "layer:slot"
    std::map<std::string, Value> values;   ///< all that cross a stage boundary, batch fields too
    LossValue loss;
    bool has_loss = false;
  };

  Forward forward(const MicroBatch& micro_batch, const Fields& fields);

  /// `output_gradients`: for values that only the driver reads, "layer:slot". Returns the
  /// gradients of the batch's fields, where a stage returned one.
  Fields backward(const MicroBatch& micro_batch,
                  const std::map<std::string, Value>& output_gradients = {});

  /// Squared norms of all parameters' gradients, in the model's order.
  std::vector<double> squared_norms();

  /// The global norm of all gradients, by the code that the optimizer actor uses.
  GradientNorm gradient_norm();

  void update(const StepUpdate& update);

  std::vector<NamedTensor> export_state();

  /// Each stage takes those that belong to it.
  void import_state(const TensorMap& tensors);

  StageExecutor& stage(std::size_t index) { return *executors_[index]; }
  std::size_t stages() const { return executors_.size(); }

 private:
  std::vector<TiedStage> tied_stages() const;

  std::vector<v1::StageConfig> configs_;
  std::vector<std::unique_ptr<StageExecutor>> executors_;
};

/// The samples of a batch cut into micro-batches of at most `size`: only MicroBatch's fields.
std::vector<MicroBatch> cut(std::uint64_t step, std::uint32_t samples, std::uint32_t size);

}  // namespace troupe::mp::test
