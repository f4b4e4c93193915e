#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/schedule.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// A micro-batch: of a training step, an evaluation or a prediction.
struct MicroBatchKey {
  v1::Key::Kind kind = v1::Key::KIND_TRAIN;
  std::uint64_t step = 0;
  std::uint32_t index = 0;

  friend bool operator<(const MicroBatchKey& a, const MicroBatchKey& b) {
    return std::tie(a.kind, a.step, a.index) < std::tie(b.kind, b.step, b.index);
  }
  friend bool operator==(const MicroBatchKey& a, const MicroBatchKey& b) {
    return std::tie(a.kind, a.step, a.index) == std::tie(b.kind, b.step, b.index);
  }
};

/// "train step 3": a step in logs and errors.
std::string describe_step(v1::Key::Kind kind, std::uint64_t step);

/// "train step 3, micro-batch 1".
std::string to_string(const MicroBatchKey& key);

/// What a stage does next. One operation runs at a time.
enum class StageOperation {
  forward,    ///< of `StageAction::micro_batch`
  backward,   ///< of `StageAction::micro_batch`
  summarise,  ///< the gradients of the step
  update,     ///< apply the optimizer's decision on the step
  state,      ///< export or import of weights, between steps
};

struct StageAction {
  StageOperation operation = StageOperation::forward;
  MicroBatchKey micro_batch;  ///< index unused by summarise and update, all of it by state
};

/// The protocol of one stage, without payloads, clocks or actors: what has arrived, what runs, what
/// may run next. Steps come in the order in which the pipeline admitted them (their unit numbers);
/// a step begins when the one before is finished on this stage, so values of later steps wait.
///
/// A training step:
///
///   from        | to          | when                            | why this order
///   ------------+-------------+---------------------------------+--------------------------------
///   (none)      | computing   | oldest step with a value here   | weights must be those of the
///               |             |                                 | step before, updated
///   computing   | computing   | backward b: its gradients here, | backward first: it frees memory;
///               |             | schedule allows it              | in order: exact sums
///   computing   | computing   | forward f: its values here,     | window bounds live activations
///               |             | window not full                 |
///   computing   | summarising | all backwards done              | norms need complete gradients
///   summarising | deciding    | summary done                    | one decision for all stages
///   deciding    | updating    | decision arrived                |
///   deciding    | (none)      | decision arrived, accumulate    | gradients stay for the next step
///   updating    | (none)      | update done                     | committed
///
/// An evaluation or prediction: forwards in order; finished after the last one. Nothing is kept.
/// Exports and imports of state run when no step is active, before the next one begins.
///
/// Anything out of protocol (a duplicate, an unknown key, a gradient that nobody awaits) is an
/// error naming the key. Errors leave the machine as it was.
class StageMachine {
 public:
  struct Shape {
    v1::Schedule schedule = v1::SCHEDULE_UNSPECIFIED;
    std::uint32_t stage = 0;
    std::uint32_t stage_count = 1;
    bool train = true;         ///< false: training micro-batches are refused
    std::size_t inbound = 0;   ///< values a forward needs
    std::size_t outbound = 0;  ///< values it sends, each to one reader
  };

  explicit StageMachine(Shape shape);

  // Events. `unit` is the running number of the micro-batch in the whole run.

  Result<void> value_arrived(const MicroBatchKey& key, std::size_t inbound,
                             std::uint32_t micro_batches, std::uint64_t unit);
  Result<void> gradient_arrived(const MicroBatchKey& key, std::size_t outbound);
  /// `accumulate`: the step ends without an update.
  Result<void> decision_arrived(std::uint64_t step, bool accumulate);
  /// One export or import is wanted.
  void state_requested() { ++state_requests_; }

  /// The running operation is done. After a forward of a training micro-batch, says for which
  /// outbound values gradients will come.
  void operation_done(const std::vector<bool>& gradients_expected = {});

  /// The next operation, which counts as running from now on; none while one runs or when a
  /// message is missing.
  std::optional<StageAction> next();

  bool running() const { return running_.has_value(); }
  const StageSchedule& schedule() const { return schedule_; }

 private:
  using StepKey = std::pair<v1::Key::Kind, std::uint64_t>;

  struct MicroBatchState {
    std::vector<bool> values;  // by inbound
    std::size_t values_missing = 0;
    std::vector<bool> gradients;  // by outbound, true: not awaited (any more)
    std::size_t gradients_missing = 0;
  };

  enum class Phase { computing, summarising, deciding, updating };

  struct Step {
    std::uint64_t unit = 0;  // smallest unit seen: the order of steps
    std::uint32_t micro_batches = 0;
    std::uint32_t forwards_done = 0;
    std::uint32_t backwards_done = 0;
    Phase phase = Phase::computing;
    bool decided = false;
    std::map<std::uint32_t, MicroBatchState> micro_batches_here;
  };

  bool finished(const StepKey& key) const;
  void finish_step();
  std::optional<StageAction> next_of_step(const StepKey& key, Step& step) const;

  Shape shape_;
  StageSchedule schedule_;
  std::map<StepKey, Step> steps_;  // active and waiting ones
  std::optional<StepKey> active_;
  std::optional<StageAction> running_;
  std::map<v1::Key::Kind, std::uint64_t> last_finished_;  // by kind: later messages are errors
  std::size_t state_requests_ = 0;
};

}  // namespace troupe::mp
