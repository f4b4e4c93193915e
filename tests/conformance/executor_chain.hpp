#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/executor_suite.hpp"
#include "core/plan.hpp"
#include "support/tied_exchange.hpp"
#include "troupe/model_parallel/executor.hpp"

namespace troupe::mp::conformance {

/// Waits for a completion: `await<T>([&](auto done) { executor.call(..., done); })`.
template <class T, class Call>
Result<T> await(const Call& call) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  call([promise](Result<T> result) { promise->set_value(std::move(result)); });
  return future.get();
}

/// Result's value, or an exception with the error's text: a failed test.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(result).value();
}
inline void check_ok(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().to_string());
}

/// What a chain is built with.
struct ChainOptions {
  std::vector<std::string> first_layers = {""};  ///< of each stage
  bool with_loss = true;
  bool frozen = false;
  std::uint64_t seed = 11;
  v1::Precision precision = v1::PRECISION_FLOAT64;
  bool tied = false;  ///< the model with tied weights
  LayerRules rules = {};
};

/// A small model, in layer order: "a" (linear, 6 to 5), "b" (tanh), "c" (linear, 5 to 4),
/// "d" (relu), "e" (identity), and the loss. With tied weights: "a" (linear, 6 to 6), "b" (tanh),
/// "c" (linear, its weight tied to that of "a"), "d" (relu), "e" (like "c"), "f" (linear, 6 to 4).
Plan make_test_plan(const ChainOptions& options);

/// A batch of the model: inputs of 6 and targets of 4 features in float64, a function of `seed`.
HostTensor test_inputs(std::uint64_t seed, std::int64_t samples);
HostTensor test_targets(std::uint64_t seed, std::int64_t samples);

/// The executors of all stages of a plan, called one after the other, with values carried between
/// them as stage actors do.
class Chain {
 public:
  Chain(const ExecutorFactory& create, const ChainOptions& options);

  StageExecutor& stage(std::size_t s) { return *executors_[s]; }
  const v1::StageConfig& config(std::size_t s) const { return plan_.stages[s].config; }

  struct Forward {
    LossValue loss;
    bool has_loss = false;
    std::uint64_t live_bytes = 0;
    std::vector<Value> outputs;  ///< of the last stage
  };
  /// `targets` may be empty (absent).
  Forward forward(const MicroBatch& micro_batch, const HostTensor& inputs,
                  const HostTensor& targets);
  /// `output_gradient` is for the output of the last layer, when there is no loss.
  void backward(const MicroBatch& micro_batch, const Value& output_gradient = absent_value());
  std::vector<double> squared_norms();
  void update(const StepUpdate& update);
  TensorMap state();

  /// A training step of two micro-batches of 3 and 2 samples: forwards, backwards, update.
  void train_step(std::uint64_t step);

 private:
  std::vector<test::TiedStage> stages() const;

  Plan plan_;
  std::vector<std::unique_ptr<StageExecutor>> executors_;
  std::map<std::uint32_t, std::map<ValueKey, Value>> values_;  // by micro-batch
};

bool same_bytes(const TensorMap& a, const TensorMap& b);

/// Micro-batch `index` of a training step.
MicroBatch training(std::uint64_t step, std::uint32_t index, std::uint32_t samples, double weight);

}  // namespace troupe::mp::conformance
