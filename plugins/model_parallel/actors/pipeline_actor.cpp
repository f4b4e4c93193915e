#include "actors/pipeline_actor.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/driver_messages.hpp"
#include "actors/postbox.hpp"
#include "core/bits.hpp"
#include "core/output_gather.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"
#include "core/stage_machine.hpp"
#include "core/stage_totals.hpp"
#include "troupe/guard.hpp"
#include "troupe/messages.hpp"

// One command at a time; each is a short sequence of activities:
//
//   command        activities                  an activity ends when
//   -------------  -------------------------- -----------------------------------------------------
//   TrainStep      training                    all stages done with all micro-batches, all losses
//                                              here, StepFinished here
//   Evaluate       evaluating, repeatedly      all stages done, all losses here
//   Predict(Batch) predicting, repeatedly      all stages done, all outputs here
//   ForwardBatch   [accumulating,] forwarding  all outputs here
//   BackwardBatch  backwarding                 all stages done
//   ApplyStep      applying                    StepFinished here
//   ExportModel    exporting                   StateEnd of every stage here
//   ImportModel    importing                   StateLoaded of every stage that got tensors here
//
// `accumulating` ends like `applying`: the optimizer is told to keep the gradients of the last
// step, because the driver went forward again without applying them. Messages of one activity come
// from several senders in any order, so each end is a condition on everything, checked after each.
//
// ForwardBatch begins a step, ApplyStep ends it. Predictions, exports and imports are for between
// steps: stages do them only then, so within one the caller would wait for ever.

namespace troupe::mp {
namespace {

using Clock = std::chrono::steady_clock;

/// Batches in one request of an evaluation or prediction: few enough that an interrupted job ends
/// soon, enough to keep the pipeline full.
constexpr std::uint64_t batches_in_request = 16;

enum class Activity {
  idle,
  training,
  evaluating,
  predicting,
  accumulating,
  forwarding,
  backwarding,
  applying,
  exporting,
  importing,
};

/// An output of the last layer that waits for its gradient.
struct PendingOutput {
  v1::Key key;
  ActorAddress producer;
  AdmissionUnit unit = 0;
  Shape shape;
  bool requires_grad = false;
};

struct PipelineState {
  static inline const char* name = "pipeline";

  explicit PipelineState(caf::stateful_actor<PipelineState>* self) : self(self) {}

  caf::stateful_actor<PipelineState>* self;
  PipelineActorConfig config;
  Postbox postbox;

  std::optional<Error> failure;
  bool interrupted = false;

  // The command in progress.
  Activity activity = Activity::idle;
  caf::response_promise promise;
  std::function<void(const Error&)> reply_error;
  Clock::time_point began;

  // The run in progress.
  v1::Key::Kind kind = v1::Key::KIND_TRAIN;
  std::uint64_t step = 0;
  std::uint64_t last_train_step = 0;
  std::uint64_t last_evaluation = 0;
  std::uint64_t last_prediction = 0;
  RunProgress progress;
  OutputGather outputs;
  StageTotals times;
  std::optional<v1::StepFinished> step_finished;

  // Evaluate and Predict.
  std::uint64_t batches_left = 0;
  EvaluationOutcome evaluation;
  std::vector<HostTensor> predicted;

  // Between ForwardBatch, BackwardBatch and ApplyStep.
  std::vector<PendingOutput> pending_outputs;
  bool gradients_held = false;
  std::optional<ForwardBatch> next_forward;

  // ExportModel and ImportModel.
  TensorMap exported;
  ModelImported imported;
  std::set<std::uint32_t> stages_left;

  void start(PipelineActorConfig c) {
    config = std::move(c);
    postbox = Postbox(config.mailer, pipeline_actor);
    self->monitor(config.data);
    if (config.optimizer) self->monitor(config.optimizer);
    self->set_down_handler([this](const caf::down_msg&) {
      fail(internal_error(where(), "an actor of the driver terminated"));
    });
  }

  // --- failure ---------------------------------------------------------------------------------

  std::string where() const {
    switch (activity) {
      case Activity::exporting: return "export of the weights";
      case Activity::importing: return "import of weights";
      default: break;
    }
    switch (kind) {
      case v1::Key::KIND_EVAL: return "evaluation";
      case v1::Key::KIND_INFER: return "prediction";
      default: return "step " + std::to_string(step);
    }
  }

  /// The first error wins: later ones are consequences of it, or as good as.
  void fail(const Error& error) {
    if (failure) return;
    failure = error;
    if (activity == Activity::idle) return;
    activity = Activity::idle;
    reply_error(error);
  }

  /// Answers a command that cannot be carried out as it is; the job goes on.
  void refuse(const Error& error) {
    activity = Activity::idle;
    reply_error(error);
  }

  void node_down(const NodeDown& down) {
    std::string place = "node " + down.node;
    for (std::size_t i = 0; i < config.stages.size(); ++i)
      if (config.stages[i].node == down.node) place += ", stage " + std::to_string(i);
    fail(cluster_error(place + ", " + where(), "lost the node: " + down.reason,
                       "look at the node's log, then run the job again"));
  }

  // --- commands --------------------------------------------------------------------------------

  /// Begins a command whose answer is Reply<T>; false when it was answered with the job's failure.
  template <class T>
  bool begin(Activity first) {
    auto answer = self->make_response_promise();
    if (failure || activity != Activity::idle) {
      answer.deliver(Reply<T>{
          failure ? *failure : internal_error("pipeline", "a command is still in progress"), T{}});
      return false;
    }
    promise = std::move(answer);
    reply_error = [this](const Error& error) { promise.deliver(Reply<T>{error, T{}}); };
    activity = first;
    began = Clock::now();
    return true;
  }

  /// Like `begin`, for what stages do between steps only: they would keep it until the step that
  /// the caller has begun is applied.
  template <class T>
  bool begin_between_steps(Activity first) {
    if (!begin<T>(first)) return false;
    if (pending_outputs.empty() && !gradients_held) return true;
    refuse(bad_input("pipeline", "a step is under way", "call step first"));
    return false;
  }

  template <class T>
  void finish(T value) {
    activity = Activity::idle;
    promise.deliver(Reply<T>{std::nullopt, std::move(value)});
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - began).count(); }

  void train_step() {
    if (!begin<StepOutcome>(Activity::training)) return;
    start_run(v1::Key::KIND_TRAIN, ++last_train_step);
    self->send(config.data, OpenRun{kind, step, config.batches_in_step, false});
  }

  void evaluate() {
    if (!begin<EvaluationOutcome>(Activity::evaluating)) return;
    evaluation = {};
    batches_left = config.evaluation_batches;
    open_forward_only(true);
  }

  void predict() {
    if (!begin<HostTensor>(Activity::predicting)) return;
    predicted.clear();
    batches_left = config.prediction_batches;
    open_forward_only(true);
  }

  void predict(const PredictBatch& command) {
    if (!begin_between_steps<HostTensor>(Activity::predicting)) return;
    if (auto fits = check_inputs(command.inputs, command.micro_batch_size); !fits)
      return refuse(fits.error());
    predicted.clear();
    batches_left = 0;
    start_run(v1::Key::KIND_INFER, ++last_prediction);
    supply(command.inputs, command.micro_batch_size);
  }

  void forward(const ForwardBatch& command) {
    if (!begin<HostTensor>(Activity::forwarding)) return;
    if (!pending_outputs.empty())
      return refuse(bad_input("pipeline", "forward before the backward of the last forward",
                              "call backward first"));
    if (auto fits = check_inputs(command.inputs, command.micro_batch_size); !fits)
      return refuse(fits.error());
    if (!gradients_held) return start_forward(command);
    next_forward = command;
    activity = Activity::accumulating;
    step_finished.reset();
    self->send(config.optimizer, DecideStep{step, true});
  }

  void start_forward(const ForwardBatch& command) {
    activity = Activity::forwarding;
    start_run(v1::Key::KIND_TRAIN, ++last_train_step);
    supply(command.inputs, command.micro_batch_size);
  }

  void backward(const BackwardBatch& command) {
    if (!begin<Done>(Activity::backwarding)) return;
    if (auto fits = check_gradient(command.output_gradient); !fits) return refuse(fits.error());
    send_output_gradients(command.output_gradient);
    gradients_held = true;
    check_done();
  }

  Result<void> check_gradient(const HostTensor& gradient) const {
    if (pending_outputs.empty())
      return bad_input("pipeline", "backward without a forward before it", "call forward first");
    Shape outputs_shape = pending_outputs.front().shape;
    outputs_shape[0] = 0;
    for (const auto& output : pending_outputs) outputs_shape[0] += output.shape[0];
    if (gradient.shape == outputs_shape && is_floating(gradient.dtype)) return {};
    return bad_input("pipeline",
                     "the gradient is " + to_string(gradient.dtype) + " of shape " +
                         to_string(gradient.shape) + ", the outputs have shape " +
                         to_string(outputs_shape),
                     "it must be floating-point and of the outputs' shape");
  }

  /// The backward of the caller's own loss starts here instead of at a loss layer.
  void send_output_gradients(const HostTensor& gradient) {
    std::int64_t row = 0;
    for (const auto& output : pending_outputs) {
      Value value;
      value.tensor = gradient.rows(row, row + output.shape[0]);
      row += output.shape[0];
      if (!output.requires_grad) continue;
      v1::Message message;
      *message.mutable_key() = output.key;
      *message.mutable_gradient()->mutable_tensor() = make_header(value);
      postbox.send(output.producer, TrafficClass::gradient, output.unit, message,
                   value.tensor.data);
    }
    pending_outputs.clear();
  }

  void apply() {
    if (!begin<StepOutcome>(Activity::applying)) return;
    if (!pending_outputs.empty())
      return refuse(bad_input("pipeline", "step before the backward of the last forward",
                              "call backward first"));
    if (!gradients_held)
      return refuse(bad_input("pipeline", "step without a backward before it",
                              "call forward and backward first"));
    step_finished.reset();
    self->send(config.optimizer, DecideStep{step, false});
  }

  void export_model() {
    if (!begin_between_steps<TensorMap>(Activity::exporting)) return;
    exported.clear();
    for (std::uint32_t i = 0; i < config.stages.size(); ++i) {
      stages_left.insert(i);
      auto message = message_with_key();
      message.mutable_export_state();
      postbox.send_control(config.stages[i], message);
    }
  }

  void import_model(const ImportModel& command) {
    if (!begin_between_steps<ModelImported>(Activity::importing)) return;
    imported = {};
    for (const auto& [stage, tensors] : command.tensors) {
      if (stage >= config.stages.size())
        return fail(internal_error("pipeline", "import into an unknown stage"));
      stages_left.insert(stage);
      send_state(stage, tensors);
    }
    check_done();
  }

  void send_state(std::uint32_t stage, const std::vector<NamedTensor>& tensors) {
    for (const auto& tensor : tensors) {
      auto message = message_with_key();
      auto* state = message.mutable_state_tensor();
      state->set_name(tensor.name);
      state->set_buffer(tensor.buffer);
      *state->mutable_tensor() = make_header(Value{tensor.tensor, false, false});
      postbox.send(config.stages[stage], TrafficClass::state, 0, message, tensor.tensor.data);
    }
    auto message = message_with_key();
    message.mutable_state_end();
    postbox.send(config.stages[stage], TrafficClass::state, 0, message);
  }

  v1::Message message_with_key() const {
    v1::Message message;
    message.mutable_key()->set_job(config.job);
    message.mutable_key()->set_generation(config.generation);
    return message;
  }

  // --- runs ------------------------------------------------------------------------------------

  void start_run(v1::Key::Kind new_kind, std::uint64_t number) {
    kind = new_kind;
    step = number;
    progress = RunProgress();
    outputs = OutputGather();
    times = StageTotals(config.stages.size());
    step_finished.reset();
  }

  void open_forward_only(bool rewind) {
    const bool evaluates = activity == Activity::evaluating;
    start_run(evaluates ? v1::Key::KIND_EVAL : v1::Key::KIND_INFER,
              evaluates ? ++last_evaluation : ++last_prediction);
    const auto batches = std::min(batches_left, batches_in_request);
    batches_left -= batches;
    self->send(config.data, OpenRun{kind, step, batches, rewind});
  }

  /// Samples are counted in 32 bits on their way.
  static Result<void> check_inputs(const HostTensor& inputs, std::uint32_t micro_batch_size) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (inputs.shape.empty() || inputs.shape[0] <= 0 || inputs.shape[0] > most)
      return bad_input("pipeline", "inputs of shape " + to_string(inputs.shape),
                       "the first dimension counts samples, from 1 to " + std::to_string(most));
    if (micro_batch_size == 0)
      return bad_input("pipeline", "a micro_batch_size of 0", "at least one sample");
    return {};
  }

  void supply(const HostTensor& inputs, std::uint32_t micro_batch_size) {
    OpenSuppliedRun open;
    open.kind = kind;
    open.step = step;
    open.batch.samples = static_cast<std::uint32_t>(inputs.shape[0]);
    open.batch.fields["inputs"] = inputs;
    open.micro_batch_size = micro_batch_size;
    self->send(config.data, std::move(open));
  }

  void opened(const RunOpened& run) {
    if (failure || run.step != step) return;
    progress = RunProgress(static_cast<std::uint32_t>(config.stages.size()), run.micro_batches,
                           window(run.micro_batches));
    outputs = OutputGather(run.micro_batches);
    admit();
  }

  /// How many micro-batches may be between admission and their end: those that the first stage may
  /// work on, and one on its way to it.
  std::uint32_t window(std::uint32_t micro_batches) const {
    const auto stages = static_cast<std::uint32_t>(config.stages.size());
    if (activity == Activity::forwarding) return micro_batches;  // ends come with the backward
    if (activity != Activity::training) return stages + 1;
    return StageSchedule(config.schedule, 0, stages).window(micro_batches) + 1;
  }

  void admit() {
    while (auto micro_batch = progress.admit())
      self->send(config.data, AdmitMicroBatch{*micro_batch});
  }

  // --- messages of stages and optimizer --------------------------------------------------------

  void receive(const Delivery& delivery) {
    if (failure) return;
    auto message = parse_message(delivery);
    if (!message) return fail(message.error());
    const auto& key = message->key();
    if (key.job() != config.job || key.generation() != config.generation) return;
    if (auto taken = take(delivery, *message); !taken) return fail(taken.error());
    check_done();
  }

  Result<void> take(const Delivery& delivery, const v1::Message& message) {
    const auto& key = message.key();
    switch (message.body_case()) {
      case v1::Message::kMicroBatchDone:
        TROUPE_TRY(expect_current(delivery, key));
        times.add(message.micro_batch_done().times());
        TROUPE_TRY(
            progress.stage_done(message.micro_batch_done().times().stage(), key.micro_batch()));
        admit();
        return {};
      case v1::Message::kLoss:
        TROUPE_TRY(expect_current(delivery, key));
        return progress.add_loss(key.micro_batch(), message.loss());
      case v1::Message::kForward: return take_output(delivery, message);
      case v1::Message::kStepFinished:
        TROUPE_TRY(expect_current(delivery, key));
        step_finished = message.step_finished();
        return {};
      case v1::Message::kFailed: return to_error(message.failed());
      case v1::Message::kStateTensor: return take_state(delivery, message.state_tensor());
      case v1::Message::kStateEnd: return stage_moved_state(message.state_end().stage());
      case v1::Message::kStateLoaded:
        imported.fingerprints[message.state_loaded().stage()] =
            message.state_loaded().fingerprint();
        return stage_moved_state(message.state_loaded().stage());
      default:
        return internal_error(to_string(delivery.from), "unexpected message to the pipeline");
    }
  }

  Result<void> expect_current(const Delivery& delivery, const v1::Key& key) const {
    if (key.kind() == kind && key.step() == step) return {};
    return internal_error(to_string(delivery.from), "message of " +
                                                        describe_step(key.kind(), key.step()) +
                                                        " during " + describe_step(kind, step));
  }

  /// An output of the last layer, for the caller. What the caller keeps is its own: the credit
  /// goes back at once.
  Result<void> take_output(const Delivery& delivery, const v1::Message& message) {
    TROUPE_TRY(expect_current(delivery, message.key()));
    TROUPE_ASSIGN(const Value value, make_value(message.forward().tensor(), delivery.payload));
    if (delivery.receipt) delivery.receipt->release();
    TROUPE_TRY(outputs.add(message.key().micro_batch(), value));
    if (activity != Activity::forwarding) return {};
    PendingOutput output;
    output.key = message.key();
    output.producer = delivery.from;
    output.unit = delivery.unit;
    output.shape = value.tensor.shape;
    output.requires_grad = value.requires_grad;
    pending_outputs.push_back(std::move(output));
    return {};
  }

  Result<void> take_state(const Delivery& delivery, const v1::StateTensor& state) {
    if (activity != Activity::exporting)
      return internal_error(to_string(delivery.from), "unexpected state tensor " + state.name());
    TROUPE_ASSIGN(Value value, make_value(state.tensor(), delivery.payload));
    if (delivery.receipt) delivery.receipt->release();
    if (!exported.emplace(state.name(), std::move(value.tensor)).second)
      return internal_error(to_string(delivery.from), "two tensors called " + state.name());
    return {};
  }

  Result<void> stage_moved_state(std::uint32_t stage) {
    if (stages_left.erase(stage) == 0)
      return internal_error("pipeline",
                            "unexpected end of the state of stage " + std::to_string(stage));
    return {};
  }

  // --- ends of activities ----------------------------------------------------------------------

  void check_done() {
    if (failure) return;
    const bool through = progress.micro_batches() != 0 && progress.all_done();
    switch (activity) {
      case Activity::idle: return;
      case Activity::training:
        if (through && progress.has_all_losses() && step_finished) end_step();
        return;
      case Activity::evaluating:
        if (through && progress.has_all_losses()) end_evaluation_request();
        return;
      case Activity::predicting:
        if (through && outputs.complete()) end_prediction_request();
        return;
      case Activity::accumulating:
        if (step_finished) continue_forward();
        return;
      case Activity::forwarding:
        if (progress.micro_batches() != 0 && outputs.complete()) end_forward();
        return;
      case Activity::backwarding:
        if (through) finish(Done{});
        return;
      case Activity::applying:
        if (step_finished) {
          gradients_held = false;
          end_step();
        }
        return;
      case Activity::exporting:
        if (stages_left.empty()) finish(std::move(exported));
        return;
      case Activity::importing:
        if (stages_left.empty()) finish(std::move(imported));
        return;
    }
  }

  /// [life:10]
  void end_step() {
    for (const auto& stage : step_finished->times()) times.add(stage);
    StepOutcome outcome;
    outcome.step = step;
    outcome.totals = progress.loss_totals();
    outcome.lr = step_finished->lr();
    outcome.grad_norm = double_from_bits(step_finished->grad_norm_bits());
    outcome.skipped = step_finished->skipped();
    outcome.loss_scale = step_finished->loss_scale();
    outcome.seconds = seconds();
    outcome.interrupted = interrupted;
    outcome.times = times.by_stage();
    finish(std::move(outcome));
  }

  void end_evaluation_request() {
    evaluation.totals.add(progress.loss_totals());
    if (batches_left != 0 && !interrupted) return open_forward_only(false);
    evaluation.interrupted = batches_left != 0;
    evaluation.seconds = seconds();
    finish(std::move(evaluation));
  }

  void end_prediction_request() {
    for (auto& tensor : outputs.take()) predicted.push_back(std::move(tensor));
    if (interrupted && batches_left != 0)
      return fail(Error{ErrorCode::interrupted, "prediction", "interrupted", ""});
    if (batches_left != 0) return open_forward_only(false);
    auto whole = concatenate_rows(std::exchange(predicted, {}));
    if (!whole) return fail(whole.error());
    finish(std::move(whole).value());
  }

  void continue_forward() {
    const ForwardBatch command = std::move(*next_forward);
    next_forward.reset();
    gradients_held = false;
    start_forward(command);
  }

  void end_forward() {
    std::sort(pending_outputs.begin(), pending_outputs.end(), [](const auto& a, const auto& b) {
      return a.key.micro_batch() < b.key.micro_batch();
    });
    auto whole = concatenate_rows(outputs.take());
    if (!whole) return fail(whole.error());
    finish(std::move(whole).value());
  }
};

caf::behavior pipeline_behavior(caf::stateful_actor<PipelineState>* self,
                                PipelineActorConfig config) {
  guard(*self);
  auto& state = self->state;
  state.start(std::move(config));
  return {
      [&state](const TrainStep&) { state.train_step(); },
      [&state](const Evaluate&) { state.evaluate(); },
      [&state](const Predict&) { state.predict(); },
      [&state](const PredictBatch& command) { state.predict(command); },
      [&state](const ForwardBatch& command) { state.forward(command); },
      [&state](const BackwardBatch& command) { state.backward(command); },
      [&state](const ApplyStep&) { state.apply(); },
      [&state](const ExportModel&) { state.export_model(); },
      [&state](const ImportModel& command) { state.import_model(command); },
      [&state](const RunOpened& run) { state.opened(run); },
      [&state](const DriverFailure& failure) { state.fail(failure.error); },
      [&state](const Delivery& delivery) { state.receive(delivery); },
      [&state](const NodeDown& down) { state.node_down(down); },
      [&state](const Interrupted&) { state.interrupted = true; },
      [&state](const RuntimeFailure& failure) { state.fail(failure.error); },
  };
}

}  // namespace

caf::actor spawn_pipeline_actor(caf::actor_system& system, PipelineActorConfig config) {
  return system.spawn(pipeline_behavior, std::move(config));
}

}  // namespace troupe::mp
