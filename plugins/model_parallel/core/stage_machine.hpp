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
  collect,    ///< take the gradients of tied parameters that other stages sent
  summarise,  ///< the gradients of the step
  update,     ///< apply the optimizer's decision on the step
  publish,    ///< send the new values of tied parameters to the stages that share them
  install,    ///< put in place the new values of tied parameters that other stages own
  state,      ///< export or import of weights, between steps
};

struct StageAction {
  StageOperation operation = StageOperation::forward;
  MicroBatchKey micro_batch;  ///< index unused after the backwards of a step, all of it by state
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
///   computing   | summarising | all backwards done, nobody      | norms need complete gradients
///               |             | shares weights owned here       |
///   computing   | collecting  | all backwards done, else        |
///   collecting  | summarising | gradients of all uses elsewhere | added in layer order, not in
///               |             | are here, and taken             | that of their arrival
///   summarising | deciding    | summary done                    | one decision for all stages
///   deciding    | updating    | decision arrived                |
///   deciding    | (none)      | decision arrived, accumulate    | gradients stay for the next step
///   updating    | publishing  | update done, others share       | they wait for these values
///               |             | weights owned here              |
///   updating,   | installing  | done, weights here are owned by | publishing comes first, so that
///    publishing |             | others                          | no two stages wait in a ring
///   installing  | (none)      | their values are here, and in   | the next step needs them;
///               |             | place                           | those that come early are kept
///   updating,   | (none)      | done, nothing is shared         | committed
///    publishing |             |                                 |
///
/// A step that is skipped changes no values: after its update nothing is published or installed.
/// Gradients of tied parameters may arrive before the step has begun here: the stage that sends
/// them need not read anything that comes from this one.
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
    bool train = true;               ///< false: training micro-batches are refused
    std::size_t inbound = 0;         ///< values a forward needs
    std::size_t outbound = 0;        ///< values it sends, each to one reader
    std::size_t tied_gradients = 0;  ///< that come from other stages after each step's backwards
    bool publishes = false;          ///< others share weights owned here
    std::size_t tied_values = 0;     ///< that come from their owners after each step's update
  };

  explicit StageMachine(const Shape& shape);

  // Events. `unit` is the running number of the micro-batch in the whole run.

  Result<void> value_arrived(const MicroBatchKey& key, std::size_t inbound,
                             std::uint32_t micro_batches, std::uint64_t unit);
  Result<void> gradient_arrived(const MicroBatchKey& key, std::size_t outbound);
  Result<void> tied_gradient_arrived(std::uint64_t step, std::size_t index);
  Result<void> tied_value_arrived(std::uint64_t step, std::size_t index);
  /// `accumulate`: the step ends without an update. `skip`: the update changes nothing.
  Result<void> decision_arrived(std::uint64_t step, bool accumulate, bool skip = false);
  /// One export or import is wanted.
  void state_requested() { ++state_requests_; }

  /// The running operation is done. After a forward of a training micro-batch, says for which
  /// outbound values gradients will come.
  void operation_done(const std::vector<bool>& gradients_expected = {});

  /// The next operation, which counts as running from now on; none while one runs or when a
  /// message is missing.
  std::optional<StageAction> next();

  bool running() const { return running_.has_value(); }
  /// Whether nothing is left of this training step: it is committed.
  bool step_finished(std::uint64_t step) const { return finished({v1::Key::KIND_TRAIN, step}); }
  const StageSchedule& schedule() const { return schedule_; }

 private:
  using StepKey = std::pair<v1::Key::Kind, std::uint64_t>;

  struct MicroBatchState {
    std::vector<bool> values;  // by inbound
    std::size_t values_missing = 0;
    std::vector<bool> gradients;  // by outbound, true: not awaited (any more)
    std::size_t gradients_missing = 0;
  };

  enum class Phase {
    computing,
    collecting,
    summarising,
    deciding,
    updating,
    publishing,
    installing,
  };

  /// Which of the things that come once in a step are here.
  class Arrivals {
   public:
    explicit Arrivals(std::size_t count = 0) : here_(count), missing_(count) {}
    /// False: unknown, or here already.
    bool add(std::size_t index);
    bool complete() const { return missing_ == 0; }

   private:
    std::vector<bool> here_;
    std::size_t missing_;
  };

  struct Step {
    std::uint64_t unit = 0;  // smallest unit seen: the order of steps
    std::uint32_t micro_batches = 0;
    std::uint32_t forwards_done = 0;
    std::uint32_t backwards_done = 0;
    Phase phase = Phase::computing;
    bool decided = false;
    bool skipped = false;
    Arrivals tied_values;
    std::map<std::uint32_t, MicroBatchState> micro_batches_here;
  };

  bool finished(const StepKey& key) const;
  void finish_step();
  void after_update(Step& step, bool published);
  std::optional<StageAction> next_of_step(const StepKey& key, Step& step) const;

  Shape shape_;
  StageSchedule schedule_;
  std::map<StepKey, Step> steps_;                     // active and waiting ones
  std::map<std::uint64_t, Arrivals> tied_gradients_;  // by step, which need not be known yet
  std::optional<StepKey> active_;
  std::optional<StageAction> running_;
  std::map<v1::Key::Kind, std::uint64_t> last_finished_;  // by kind: later messages are errors
  std::size_t state_requests_ = 0;
};

}  // namespace troupe::mp
