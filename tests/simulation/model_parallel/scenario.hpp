#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/driver.hpp"
#include "support/local_session.hpp"

namespace troupe::mp::test {

/// A training run of a small model on the fake executor: what a test varies.
struct Scenario {
  std::vector<std::string> stage_nodes = {"a"};   ///< one for each stage
  std::vector<std::uint32_t> first_layers = {0};  ///< one for each stage; "l<i>"
  v1::Schedule schedule = v1::SCHEDULE_ONE_F_ONE_B;
  std::uint32_t batch_size = 8;
  std::uint32_t micro_batch_size = 3;
  std::uint32_t evaluation_batch_size = 5;
  std::uint64_t batches_in_step = 1;
  std::optional<std::int32_t> ignore_index;  ///< of targets, which are the samples' numbers mod 10
  std::uint64_t steps = 4;
  double clip_grad_norm = 0;
  std::uint64_t weights_seed = 7;
  /// Layers, by number, whose weight is that of an earlier layer.
  std::map<std::uint32_t, std::uint32_t> tied;
  std::vector<std::uint32_t> frozen_stages;
  v1::Precision precision = v1::PRECISION_FLOAT32;
  LayerRules rules;
  std::optional<v1::LossScaling> loss_scaling;
  troupe::testing::SimulationOptions simulation;
  /// Attributes of one layer: injected failures.
  std::uint32_t special_layer = 0;
  std::map<std::string, double> special_attributes;
};

inline constexpr std::uint32_t layer_count = 6;
/// Three batches of 8 in an epoch, the last one of 4.
inline constexpr std::uint64_t samples_in_epoch = 20;

/// The layers "l0" to "l5": each with a weight, every second one with a buffer too.
std::vector<v1::Layer> layers_of(const Scenario& scenario);

/// The scenario's nodes and actors, ready for commands.
class Running {
 public:
  explicit Running(const Scenario& scenario);

  troupe::testing::LocalSession& session() { return *session_; }
  troupe::testing::SimulatedCluster& cluster() { return session_->cluster(); }
  Driver& driver() { return *driver_; }
  PipelineClient& pipeline() { return driver_->pipeline(); }
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  std::unique_ptr<troupe::testing::LocalSession> session_;
  std::unique_ptr<Driver> driver_;
};

struct TrainingOutcome {
  std::vector<StepOutcome> steps;
  TensorMap initial;
  TensorMap state;
};

/// Trains all steps; a failure throws with its text.
TrainingOutcome train(Running& running, std::uint64_t steps);
TrainingOutcome train(const Scenario& scenario);

/// A stage for each of the first layers, on nodes "a", "b", ... in turn.
Scenario cut_at(const std::vector<std::uint32_t>& first_layers, std::size_t nodes);

bool same_state(const TensorMap& a, const TensorMap& b);

/// The value, or an exception with the error's text.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(result).value();
}

}  // namespace troupe::mp::test
