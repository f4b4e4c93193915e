#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/driver_messages.hpp"
#include "core/plan.hpp"
#include "core/stage_totals.hpp"
#include "jobs/throughput.hpp"
#include "troupe/console.hpp"

namespace troupe::mp {

/// What a training run came to.
struct TrainingResult {
  std::uint64_t steps = 0;
  std::uint64_t skipped_steps = 0;  ///< of these, because gradients overflowed
  double last_loss = 0;
  Throughput throughput;    ///< of the training steps
  double wall_seconds = 0;  ///< everything, start to end
  std::optional<EvaluationOutcome> evaluation;
  /// Of a model that knows the tokens' frequencies alone, on the same data; see frequency_loss.
  std::optional<double> frequency_loss;
  std::uint64_t skipped_files = 0;  ///< that the data sets left out
  bool classifies = false;  ///< the loss is one of class indices, so that there is an accuracy
  StageTotals stages;
  std::string weights;  ///< path; empty when discarded
};

/// Share of what counts (samples, or targets that are not ignored) that was classified correctly,
/// in [0, 1].
double accuracy(const LossTotals& totals);

/// "accuracy 91.25 % on 400 samples, loss 0.3"; the accuracy only of what `classifies`. Where
/// targets count, "on 9000 targets of 400 samples".
std::string describe_evaluation(const LossTotals& totals, bool classifies);

/// Prints the result: lines of text, and an object for `--json`.
void print_closing_report(Console& console, const Plan& plan, const TrainingResult& result);

}  // namespace troupe::mp
