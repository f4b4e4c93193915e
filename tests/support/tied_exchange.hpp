#pragma once

#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/value_ref.hpp"
#include "troupe/model_parallel/executor.hpp"

/// What stage actors exchange for tied parameters, done by hand between executors.

namespace troupe::mp::test {

template <class T, class Call>
Result<T> result_of(const Call& call) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  call([promise](Result<T> result) { promise->set_value(std::move(result)); });
  return future.get();
}

inline void expect_ok(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().to_string());
}

/// Stages of a plan, in its order.
struct TiedStage {
  const v1::StageConfig* config = nullptr;
  StageExecutor* executor = nullptr;
};

/// The summary of each stage, after it was given what later stages have of its weights.
inline std::vector<GradientSummary> summarise_all(const std::vector<TiedStage>& stages) {
  std::map<std::string, Value> gradients;  // by use
  std::vector<GradientSummary> summaries(stages.size());
  for (std::size_t s = stages.size(); s-- > 0;) {
    const auto& config = *stages[s].config;
    std::vector<Value> taken;
    for (const auto& weight : config.tied_weights())
      for (const auto& use : weight.uses())
        if (use.has_stage()) taken.push_back(gradients.at(use.parameter()));
    if (!taken.empty())
      expect_ok(result_of<void>([&](auto done) {
        stages[s].executor->take_tied_gradients(std::move(taken), std::move(done));
      }));
    auto summary = result_of<GradientSummary>(
        [&](auto done) { stages[s].executor->summarise_gradients(std::move(done)); });
    if (!summary) throw std::runtime_error(summary.error().to_string());
    std::size_t next = 0;
    for (const auto& copy : config.tied_copies())
      for (const auto& use : copy.uses()) gradients[use] = summary->tied_gradients.at(next++);
    summaries[s] = std::move(summary).value();
  }
  return summaries;
}

/// Gives the stages that share weights their owners' values.
inline void exchange_tied_values(const std::vector<TiedStage>& stages) {
  std::map<std::string, Value> values;  // by owner
  for (const auto& stage : stages) {
    const auto exported = result_of<std::vector<Value>>(
        [&](auto done) { stage.executor->export_tied_values(std::move(done)); });
    if (!exported) throw std::runtime_error(exported.error().to_string());
    for (std::size_t i = 0; i < exported->size(); ++i)
      values[stage.config->tied_weights(static_cast<int>(i)).parameter()] = (*exported)[i];
    std::vector<NamedTensor> copies;
    for (const auto& copy : stage.config->tied_copies())
      copies.push_back({copy.uses(0), values.at(copy.owner()).tensor, false});
    if (copies.empty()) continue;
    expect_ok(result_of<void>(
        [&](auto done) { stage.executor->import_state(std::move(copies), std::move(done)); }));
  }
}

inline bool exchanges_tied(const std::vector<TiedStage>& stages) {
  for (const auto& stage : stages)
    if (stage.config->tied_copies_size() != 0) return true;
  return false;
}

}  // namespace troupe::mp::test
