#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/message.hpp>

#include "actors/messages.hpp"
#include "actors/postbox.hpp"
#include "actors/stage_inbox.hpp"
#include "actors/tied_inbox.hpp"
#include "core/activation_ledger.hpp"
#include "core/stage_machine.hpp"
#include "core/stage_stopwatch.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/parcel.hpp"

namespace troupe::mp {

/// State of a stage actor: turns deliveries into events of the state machine, its actions into
/// work for the executor, and what comes back into messages. Never blocks.
class StageState {
 public:
  static inline const char* name = "stage";

  /// What the state needs of the actor around it.
  struct Surroundings {
    Postbox postbox;
    std::function<void(caf::message)> compute;  ///< to the executor, in the actor's name
    std::function<StageStopwatch::TimePoint()> now;
  };

  void start(const v1::StageConfig& config, Surroundings surroundings);

  void receive(const Delivery& delivery);

  void executor_ready(const Result<runtime::v1::NumericFingerprint>& result);
  void forward_done(const ExecutorDone<ForwardOutcome>& done);
  void backward_done(const ExecutorDone<BackwardOutcome>& done);
  void summary_done(const ExecutorDone<GradientSummary>& done);
  void values_done(const ExecutorDone<std::vector<Value>>& done);
  void export_done(const ExecutorDone<std::vector<NamedTensor>>& done);
  /// Of an operation without a value: collecting, an update, an import.
  void nothing_done(const ExecutorDone<Nothing>& done);
  void executor_lost(const std::string& reason);

  /// First error wins: it goes to the pipeline actor, and nothing is done after it.
  void fail(const Error& error);

 private:
  /// An export or import that waits for its turn.
  struct StateRequest {
    enum class Kind { export_all, import_tensor, import_end };
    Kind kind = Kind::export_all;
    ActorAddress client;
    AdmissionUnit unit = 0;
    NamedTensor tensor;
    std::shared_ptr<Receipt> receipt;
  };

  Result<void> dispatch(const v1::Message& message, const Delivery& delivery);
  Result<void> take_value(const MicroBatchKey& key, const v1::Message& message,
                          const Delivery& delivery);
  /// That the sender computes as this stage does, and sends the type that the plan says.
  Result<void> check_value(const MicroBatchKey& key, const v1::StageConfig::Inbound& inbound,
                           const v1::Forward& header) const;
  Result<void> take_gradient(const MicroBatchKey& key, const v1::Message& message,
                             const Delivery& delivery);
  Result<void> take_tied_gradient(std::uint64_t step, const v1::TiedGradient& header,
                                  const Delivery& delivery);
  Result<void> take_tied_value(std::uint64_t step, const v1::TiedValue& header,
                               const Delivery& delivery);
  Result<void> take_decision(std::uint64_t step, const v1::StepDecision& decision);
  Result<void> take_tensor(const v1::StateTensor& header, const Delivery& delivery);
  void request_state(StateRequest request);

  void advance();
  void start_operation(const StageAction& action);
  void start_state_request();

  /// Accounts for an operation that is over; false when it failed, which is then reported.
  template <class T>
  bool accept(const ExecutorDone<T>& done);
  /// After an operation that was accepted, once everything it produced has been handed on.
  void go_on(const std::vector<bool>& gradients_expected = {});

  void send_outputs(const MicroBatchKey& key, const ForwardOutcome& outcome);
  void send_gradients(const MicroBatchKey& key, const BackwardOutcome& outcome);
  void send_loss(const MicroBatchKey& key, const LossValue& loss);
  void send_tied_gradients(std::uint64_t step, const std::vector<Value>& gradients);
  void send_tied_values(std::uint64_t step, const std::vector<Value>& values);
  void end_state_request();
  void micro_batch_done(const MicroBatchKey& key);
  void commit(std::uint64_t step);

  v1::Message message_about(const MicroBatchKey& key) const;
  v1::StageTimes take_times();
  /// `fail` with what the executor was doing as the place.
  void fail_operation(const Error& error);
  void report_failure(const std::string& place, const Error& error);

  v1::StageConfig config_;
  std::string component_;  // of log lines: "stage.1"
  ActorAddress pipeline_;
  ActorAddress optimizer_;
  Surroundings actor_;

  std::optional<StageMachine> machine_;
  std::optional<StageInbox> inbox_;
  std::optional<TiedInbox> tied_;
  ActivationLedger ledger_;
  StageStopwatch stopwatch_;
  std::optional<StageAction> current_;  // what the executor is doing
  v1::StepDecision decision_;
  double loss_scale_ = 1;                 // of the current step
  std::uint64_t peak_compute_bytes_ = 0;  // since the last report
  std::deque<StateRequest> state_requests_;
  AdmissionUnit exports_ = 0;
  std::optional<runtime::v1::NumericFingerprint> fingerprint_;  // once the executor is ready
  bool failed_ = false;
};

}  // namespace troupe::mp
