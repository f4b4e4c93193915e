#include "actors/stage_state.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "actors/protocol.hpp"
#include "core/bits.hpp"
#include "core/precision.hpp"
#include "troupe/log.hpp"

// A stage's part in a training step (see StageMachine for what may happen when):
//
//   Forward (activations, batch fields) ->  forward   -> Forward to the next reader of each output,
//                                                        LossReport to the pipeline
//   Gradient (from the next readers)    ->  backward  -> Gradient to where its inputs came from,
//                                                        MicroBatchDone to the pipeline
//   TiedGradient (from the stages that  ->  collect
//     share weights owned here)
//   (after the last backward, and that) ->  summarise -> StepReport to the optimizer,
//                                                        TiedGradient to the owners of weights that
//                                                        are shared here
//   StepDecision (from the optimizer)   ->  update
//   (after an update, on an owner)      ->  publish   -> TiedValue to the stages that share
//   TiedValue (from the owners)         ->  install
//   (after the last of these)                         -> StepCommitted to the optimizer
//
// Credit: the receipt of a value is held until its backward is done, since the executor keeps the
// value that long; until its forward is done in evaluation, and under GPipe, which holds a whole
// step by definition and would otherwise wait for credit that only later micro-batches free. The
// receipt of a gradient is held until the backward that uses it is done. Tied gradients and values
// are held until the executor has taken them; all of one step are one unit, so they are admitted
// together, and the next step's come only after its commit.

namespace troupe::mp {
namespace {

/// A floating-point tensor must come in the type that the plan gives its value.
Result<void> check_type(const MicroBatchKey& key, const std::string& what, v1::DType expected,
                        const v1::TensorHeader& header) {
  if (header.absent() || !is_floating(header.dtype()) || expected == v1::DTYPE_UNSPECIFIED ||
      header.dtype() == expected)
    return {};
  return internal_error(to_string(key), what + " came as " + to_string(header.dtype()) +
                                            " instead of " + to_string(expected));
}

}  // namespace

void StageState::start(const v1::StageConfig& config, Surroundings surroundings) {
  config_ = config;
  actor_ = std::move(surroundings);
  component_ = actor_.postbox.self().actor;
  pipeline_ = to_address(config.pipeline());
  optimizer_ = to_address(config.optimizer());

  StageMachine::Shape shape;
  shape.schedule = config.schedule();
  shape.stage = config.stage();
  shape.stage_count = config.stage_count();
  shape.train = config.train();
  shape.inbound = static_cast<std::size_t>(config.inbound_size());
  shape.outbound = static_cast<std::size_t>(config.outbound_size());
  tied_.emplace(config);
  shape.tied_gradients = tied_->gradients();
  shape.publishes = tied_->gradients() != 0;
  shape.tied_values = tied_->values();
  machine_.emplace(shape);
  inbox_.emplace(config);
  if (config.loss_scale() != 0) loss_scale_ = config.loss_scale();
}

// --- what arrives ----------------------------------------------------------------------------

void StageState::receive(const Delivery& delivery) {
  if (failed_) return;
  const auto message = parse_message(delivery);
  if (!message) return fail(message.error());
  if (auto taken = dispatch(*message, delivery); !taken) return fail(taken.error());
  advance();
}

Result<void> StageState::dispatch(const v1::Message& message, const Delivery& delivery) {
  const auto& header = message.key();
  if (header.job() != config_.job())
    return internal_error(to_string(delivery.from), "a message of job \"" + header.job() + "\"");
  if (header.generation() < config_.generation()) {
    log_debug(component_, "dropped a message of generation {} from {}", header.generation(),
              to_string(delivery.from));
    return {};
  }
  if (header.generation() > config_.generation())
    return internal_error(to_string(delivery.from), "a message of generation " +
                                                        std::to_string(header.generation()) +
                                                        ", which this stage has not adopted");
  const MicroBatchKey key{header.kind(), header.step(), header.micro_batch()};
  switch (message.body_case()) {
    case v1::Message::kForward: return take_value(key, message, delivery);
    case v1::Message::kGradient: return take_gradient(key, message, delivery);
    case v1::Message::kTiedGradient:
      return take_tied_gradient(key.step, message.tied_gradient(), delivery);
    case v1::Message::kTiedValue: return take_tied_value(key.step, message.tied_value(), delivery);
    case v1::Message::kStepDecision: return take_decision(key.step, message.step_decision());
    case v1::Message::kStateTensor: return take_tensor(message.state_tensor(), delivery);
    case v1::Message::kStateEnd:
      request_state({StateRequest::Kind::import_end, delivery.from, delivery.unit, {}, {}});
      return {};
    case v1::Message::kExportState:
      request_state({StateRequest::Kind::export_all, delivery.from, ++exports_, {}, {}});
      return {};
    default:
      return internal_error(to_string(delivery.from), "a message that stages do not understand");
  }
}

Result<void> StageState::take_value(const MicroBatchKey& key, const v1::Message& message,
                                    const Delivery& delivery) {
  const auto& header = message.forward();
  TROUPE_ASSIGN(const std::size_t inbound,
                inbox_->find_inbound(message.key().value(), delivery.from));
  auto value = make_value(header.tensor(), delivery.payload);
  if (!value)
    return internal_error(to_string(key),
                          describe(message.key().value()) + ": " + value.error().what);
  TROUPE_TRY(check_value(key, config_.inbound(static_cast<int>(inbound)), header));
  TROUPE_TRY(machine_->value_arrived(key, inbound, header.micro_batches(), delivery.unit));
  return inbox_->keep_value(key, inbound, header, std::move(value).value(), delivery);
}

Result<void> StageState::check_value(const MicroBatchKey& key,
                                     const v1::StageConfig::Inbound& inbound,
                                     const v1::Forward& header) const {
  if (!inbound.has_producer()) return {};
  const auto what = describe(inbound.value());
  if (precision_or_default(header.precision()) != precision_or_default(config_.precision()))
    return internal_error(to_string(key), what + " was computed in " + name_of(header.precision()) +
                                              ", this stage is in " + name_of(config_.precision()));
  return check_type(key, what, inbound.dtype(), header.tensor());
}

Result<void> StageState::take_gradient(const MicroBatchKey& key, const v1::Message& message,
                                       const Delivery& delivery) {
  TROUPE_ASSIGN(const std::size_t outbound,
                inbox_->find_outbound(message.key().value(), delivery.from));
  auto gradient = make_value(message.gradient().tensor(), delivery.payload);
  if (!gradient)
    return internal_error(to_string(key), "gradient of " + describe(message.key().value()) + ": " +
                                              gradient.error().what);
  TROUPE_TRY(check_type(key, "gradient of " + describe(message.key().value()),
                        config_.outbound(static_cast<int>(outbound)).dtype(),
                        message.gradient().tensor()));
  TROUPE_TRY(machine_->gradient_arrived(key, outbound));
  inbox_->keep_gradient(key, outbound, std::move(gradient).value(), delivery);
  return {};
}

Result<void> StageState::take_tied_gradient(std::uint64_t step, const v1::TiedGradient& header,
                                            const Delivery& delivery) {
  TROUPE_ASSIGN(const std::size_t use, tied_->find_use(header.parameter(), delivery.from));
  auto gradient = make_value(header.tensor(), delivery.payload);
  if (!gradient)
    return internal_error(to_string(delivery.from),
                          "gradient of " + header.parameter() + ": " + gradient.error().what);
  TROUPE_TRY(machine_->tied_gradient_arrived(step, use));
  tied_->keep_gradient(step, use, std::move(gradient).value(), delivery);
  return {};
}

Result<void> StageState::take_tied_value(std::uint64_t step, const v1::TiedValue& header,
                                         const Delivery& delivery) {
  TROUPE_ASSIGN(const std::size_t copy, tied_->find_copy(header.parameter(), delivery.from));
  auto value = make_value(header.tensor(), delivery.payload);
  if (!value || value->absent)
    return internal_error(to_string(delivery.from), "values of " + header.parameter() + ": " +
                                                        (value ? "no data" : value.error().what));
  TROUPE_TRY(machine_->tied_value_arrived(step, copy));
  tied_->keep_value(copy, std::move(value).value(), delivery);
  return {};
}

Result<void> StageState::take_decision(std::uint64_t step, const v1::StepDecision& decision) {
  TROUPE_TRY(machine_->decision_arrived(step, decision.accumulate(), decision.skip()));
  decision_ = decision;
  if (decision.loss_scale() != 0) loss_scale_ = decision.loss_scale();
  if (decision.accumulate()) commit(step);
  return {};
}

Result<void> StageState::take_tensor(const v1::StateTensor& header, const Delivery& delivery) {
  auto value = make_value(header.tensor(), delivery.payload);
  if (!value || value->absent)
    return bad_input("tensor " + header.name(), value ? "has no data" : value.error().what);
  request_state({StateRequest::Kind::import_tensor,
                 delivery.from,
                 delivery.unit,
                 {header.name(), std::move(value->tensor), header.buffer()},
                 delivery.receipt});
  return {};
}

void StageState::request_state(StateRequest request) {
  state_requests_.push_back(std::move(request));
  machine_->state_requested();
}

// --- what is done next -----------------------------------------------------------------------

void StageState::advance() {
  if (!fingerprint_ || failed_ || machine_->running()) return;
  const auto action = machine_->next();  // [life:3]
  if (action) start_operation(*action);
}

void StageState::start_operation(const StageAction& action) {
  current_ = action;
  if (action.operation == StageOperation::state)
    stopwatch_.pause();
  else
    stopwatch_.operation_starts(actor_.now());
  const auto& key = action.micro_batch;
  switch (action.operation) {
    case StageOperation::forward: {
      log_debug(component_, "{}: forward", to_string(key));
      auto& held = inbox_->at(key);
      actor_.compute(
          caf::make_message(RunForward{{held.micro_batch, std::exchange(held.values, {})}}));
      break;
    }
    case StageOperation::backward: {
      log_debug(component_, "{}: backward", to_string(key));
      auto& held = inbox_->at(key);
      actor_.compute(caf::make_message(
          RunBackward{{held.micro_batch, std::exchange(held.gradients, {}), loss_scale_}}));
      break;
    }
    case StageOperation::collect:
      actor_.compute(caf::make_message(TakeTiedGradients{tied_->take_gradients(key.step)}));
      break;
    case StageOperation::publish: actor_.compute(caf::make_message(ExportTiedValues{})); break;
    case StageOperation::install:
      actor_.compute(caf::make_message(ImportExecutorState{tied_->take_values()}));
      break;
    case StageOperation::summarise: actor_.compute(caf::make_message(SummariseGradients{})); break;
    case StageOperation::update:
      actor_.compute(caf::make_message(RunUpdate{
          {{decision_.lr().begin(), decision_.lr().end()}, decision_.scale(), decision_.skip()}}));
      break;
    case StageOperation::state: start_state_request(); break;
  }
}

void StageState::start_state_request() {
  auto& request = state_requests_.front();
  switch (request.kind) {
    case StateRequest::Kind::export_all:
      actor_.compute(caf::make_message(ExportExecutorState{}));
      break;
    case StateRequest::Kind::import_tensor:
    case StateRequest::Kind::import_end: {
      // The end is an import of nothing: it is answered when everything before it is in place.
      std::vector<NamedTensor> tensors;
      if (request.kind == StateRequest::Kind::import_tensor)
        tensors.push_back(std::move(request.tensor));
      actor_.compute(caf::make_message(ImportExecutorState{std::move(tensors)}));
      break;
    }
  }
}

// --- what is over ----------------------------------------------------------------------------

template <class T>
bool StageState::accept(const ExecutorDone<T>& done) {
  if (failed_) return false;
  if (current_->operation != StageOperation::state)
    stopwatch_.operation_ends(actor_.now(), done.seconds);
  if (!done.result) fail_operation(done.result.error());
  return !failed_;
}

void StageState::go_on(const std::vector<bool>& gradients_expected) {
  if (current_->operation != StageOperation::state) stopwatch_.settled(actor_.now());
  const auto key = current_->micro_batch;
  const bool in_step =
      current_->operation != StageOperation::state && key.kind == v1::Key::KIND_TRAIN;
  current_.reset();
  machine_->operation_done(gradients_expected);
  if (in_step && machine_->step_finished(key.step)) commit(key.step);
  advance();
}

void StageState::forward_done(const ExecutorDone<ForwardOutcome>& done) {
  if (!accept(done)) return;
  const auto key = current_->micro_batch;
  const auto& outcome = *done.result;
  peak_compute_bytes_ = std::max(peak_compute_bytes_, outcome.peak_compute_bytes);
  std::vector<bool> gradients_expected;
  for (const auto& output : outcome.outputs) gradients_expected.push_back(output.requires_grad);
  // The pipeline waits for it: without this the step would never end.
  const bool wants_loss = config_.has_loss() && key.kind != v1::Key::KIND_INFER;
  if (wants_loss && !outcome.has_loss)
    return fail_operation(internal_error("", "the loss layer gave no loss"));

  send_outputs(key, outcome);
  if (outcome.has_loss) send_loss(key, outcome.loss);
  if (key.kind == v1::Key::KIND_TRAIN) {
    auto& held = inbox_->at(key);
    ledger_.keep(held.unit, outcome.live_bytes);
    if (machine_->schedule().holds_whole_step()) held.value_receipts.clear();
  } else {
    micro_batch_done(key);
  }
  go_on(gradients_expected);
}

void StageState::backward_done(const ExecutorDone<BackwardOutcome>& done) {
  if (!accept(done)) return;
  const auto key = current_->micro_batch;
  peak_compute_bytes_ = std::max(peak_compute_bytes_, done.result->peak_compute_bytes);
  send_gradients(key, *done.result);
  ledger_.release(inbox_->at(key).unit);
  micro_batch_done(key);
  go_on();
}

void StageState::summary_done(const ExecutorDone<GradientSummary>& done) {
  if (!accept(done)) return;
  auto message = message_about(current_->micro_batch);
  auto* report = message.mutable_step_report();
  report->set_stage(config_.stage());
  report->set_first_parameter(config_.first_parameter());
  for (const auto norm : done.result->squared_norms) report->add_squared_norm_bits(bits_of(norm));
  report->set_finite(done.result->finite);
  *report->mutable_times() = take_times();
  send_tied_gradients(current_->micro_batch.step, done.result->tied_gradients);
  actor_.postbox.send_control(optimizer_, message);  // [life:9]
  go_on();
}

void StageState::nothing_done(const ExecutorDone<Nothing>& done) {
  if (!accept(done)) return;
  switch (current_->operation) {
    case StageOperation::collect:
    case StageOperation::install: tied_->release(); break;
    case StageOperation::state: end_state_request(); break;
    default: break;
  }
  go_on();
}

/// Of an import.
void StageState::end_state_request() {
  const auto request = std::move(state_requests_.front());
  state_requests_.pop_front();
  if (request.kind != StateRequest::Kind::import_end) return;
  auto message = message_about({});
  message.mutable_state_loaded()->set_stage(config_.stage());
  *message.mutable_state_loaded()->mutable_fingerprint() = *fingerprint_;
  actor_.postbox.send_control(request.client, message);
}

void StageState::values_done(const ExecutorDone<std::vector<Value>>& done) {
  if (!accept(done)) return;
  send_tied_values(current_->micro_batch.step, *done.result);
  go_on();
}

void StageState::export_done(const ExecutorDone<std::vector<NamedTensor>>& done) {
  if (!accept(done)) return;
  const auto request = std::move(state_requests_.front());
  state_requests_.pop_front();
  // One unit for all tensors and the end, so that they are admitted together and in order.
  for (const auto& tensor : *done.result) {
    auto message = message_about({});
    auto* header = message.mutable_state_tensor();
    header->set_name(tensor.name);
    *header->mutable_tensor() = make_header(Value{tensor.tensor, false, false});
    header->set_buffer(tensor.buffer);
    actor_.postbox.send(request.client, TrafficClass::state, request.unit, message,
                        tensor.tensor.data);
  }
  auto end = message_about({});
  end.mutable_state_end()->set_stage(config_.stage());
  actor_.postbox.send(request.client, TrafficClass::state, request.unit, end);
  go_on();
}

void StageState::executor_ready(const Result<runtime::v1::NumericFingerprint>& result) {
  if (failed_) return;
  if (!result) return fail(result.error());
  fingerprint_ = *result;
  log_debug(component_, "ready on {}", config_.device());
  advance();
}

void StageState::executor_lost(const std::string& reason) {
  fail_operation(internal_error("", "the executor ended: " + reason));
}

// --- what is sent ----------------------------------------------------------------------------

void StageState::send_outputs(const MicroBatchKey& key, const ForwardOutcome& outcome) {
  const auto& held = inbox_->at(key);
  for (int i = 0; i < config_.outbound_size(); ++i) {
    const auto& outbound = config_.outbound(i);
    const auto& output = outcome.outputs[static_cast<std::size_t>(i)];
    auto message = message_about(key);
    *message.mutable_key()->mutable_value() = outbound.value();
    auto* forward = message.mutable_forward();
    *forward->mutable_tensor() = make_header(output);
    forward->set_micro_batches(held.micro_batches);
    forward->set_weight(held.micro_batch.weight);
    forward->set_samples(held.micro_batch.samples);
    forward->set_first_sample(held.micro_batch.first_sample);
    forward->set_counted(held.micro_batch.counted);
    forward->set_precision(config_.precision());
    actor_.postbox.send(to_address(outbound.reader()), TrafficClass::activation, held.unit, message,
                        output.tensor.data);  // [life:5]
  }
}

void StageState::send_gradients(const MicroBatchKey& key, const BackwardOutcome& outcome) {
  const auto& held = inbox_->at(key);
  for (int i = 0; i < config_.inbound_size(); ++i) {
    const auto& inbound = config_.inbound(i);
    const auto index = static_cast<std::size_t>(i);
    if (!inbound.has_producer() || !held.wants_gradient[index]) continue;
    const auto& gradient = outcome.input_gradients[index];
    auto message = message_about(key);
    *message.mutable_key()->mutable_value() = inbound.value();
    *message.mutable_gradient()->mutable_tensor() = make_header(gradient);
    actor_.postbox.send(to_address(inbound.producer()), TrafficClass::gradient, held.unit, message,
                        gradient.tensor.data);  // [life:7]
  }
}

void StageState::send_loss(const MicroBatchKey& key, const LossValue& loss) {
  const auto& micro_batch = inbox_->at(key).micro_batch;
  auto message = message_about(key);
  auto* report = message.mutable_loss();
  report->set_loss_bits(bits_of(loss.loss));
  report->set_samples(micro_batch.samples);
  report->set_counted(micro_batch.counted);
  report->set_correct(loss.correct);
  actor_.postbox.send_control(pipeline_, message);
}

void StageState::send_tied_gradients(std::uint64_t step, const std::vector<Value>& gradients) {
  std::size_t next = 0;
  for (const auto& copy : config_.tied_copies())
    for (const auto& use : copy.uses()) {
      const auto& gradient = gradients.at(next++);
      auto message = message_about({v1::Key::KIND_TRAIN, step, 0});
      message.mutable_tied_gradient()->set_parameter(use);
      *message.mutable_tied_gradient()->mutable_tensor() = make_header(gradient);
      actor_.postbox.send(to_address(copy.owner_stage()), TrafficClass::state, step, message,
                          gradient.tensor.data);
    }
}

void StageState::send_tied_values(std::uint64_t step, const std::vector<Value>& values) {
  for (int i = 0; i < config_.tied_weights_size(); ++i) {
    const auto& weight = config_.tied_weights(i);
    const auto& value = values.at(static_cast<std::size_t>(i));
    std::set<std::string> sent;  // a stage with several uses gets it once
    for (const auto& use : weight.uses()) {
      if (!use.has_stage() || !sent.insert(use.stage().actor()).second) continue;
      auto message = message_about({v1::Key::KIND_TRAIN, step, 0});
      message.mutable_tied_value()->set_parameter(weight.parameter());
      *message.mutable_tied_value()->mutable_tensor() = make_header(value);
      actor_.postbox.send(to_address(use.stage()), TrafficClass::state, step, message,
                          value.tensor.data);
    }
  }
}

void StageState::micro_batch_done(const MicroBatchKey& key) {
  inbox_->release(key);  // [life:8]
  auto message = message_about(key);
  *message.mutable_micro_batch_done()->mutable_times() = take_times();
  actor_.postbox.send_control(pipeline_, message);
  log_debug(component_, "{}: done", to_string(key));
}

void StageState::commit(std::uint64_t step) {
  auto message = message_about({v1::Key::KIND_TRAIN, step, 0});
  message.mutable_step_committed()->set_stage(config_.stage());
  actor_.postbox.send_control(optimizer_, message);
  log_debug(component_, "{}: committed", describe_step(v1::Key::KIND_TRAIN, step));
}

v1::Message StageState::message_about(const MicroBatchKey& key) const {
  v1::Message message;
  auto* header = message.mutable_key();
  header->set_job(config_.job());
  header->set_generation(config_.generation());
  header->set_kind(key.kind);
  header->set_step(key.step);
  header->set_micro_batch(key.index);
  return message;
}

v1::StageTimes StageState::take_times() {
  const auto seconds = stopwatch_.take();
  v1::StageTimes times;
  times.set_stage(config_.stage());
  times.set_compute(seconds.compute);
  times.set_waiting(seconds.waiting);
  times.set_transfer(seconds.transfer);
  times.set_live_bytes(ledger_.live_bytes());
  times.set_peak_live_bytes(ledger_.peak_bytes());
  times.set_peak_live_micro_batches(ledger_.peak_micro_batches());
  times.set_peak_compute_bytes(std::exchange(peak_compute_bytes_, 0));
  ledger_.reset_peaks();
  return times;
}

// --- failure ---------------------------------------------------------------------------------

void StageState::fail(const Error& error) { report_failure({}, error); }

void StageState::fail_operation(const Error& error) {
  if (!current_) return report_failure({}, error);
  const auto& key = current_->micro_batch;
  switch (current_->operation) {
    case StageOperation::forward:
    case StageOperation::backward: return report_failure(", " + to_string(key), error);
    case StageOperation::collect:
    case StageOperation::summarise:
    case StageOperation::update:
    case StageOperation::publish:
    case StageOperation::install:
      return report_failure(", " + describe_step(key.kind, key.step), error);
    case StageOperation::state: return report_failure(", weights", error);
  }
}

void StageState::report_failure(const std::string& place, const Error& error) {
  if (failed_) return;
  failed_ = true;
  Error located = error;
  located.where = "stage " + std::to_string(config_.stage()) + " (node " +
                  actor_.postbox.self().node + ")" + place;
  if (!error.where.empty()) located.what = error.where + ": " + error.what;
  log_info(component_, "{}", located.to_string());  // the driver prints it

  auto message = message_about(current_ ? current_->micro_batch : MicroBatchKey{});
  *message.mutable_failed() = to_proto(located, config_.stage());
  actor_.postbox.send_control(pipeline_, message);
  inbox_->clear();
  tied_->clear();
  state_requests_.clear();
  actor_.compute(caf::make_message(DiscardAll{}));
}

}  // namespace troupe::mp
