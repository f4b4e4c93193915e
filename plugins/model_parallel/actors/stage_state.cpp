#include "actors/stage_state.hpp"

#include <utility>

#include "actors/protocol.hpp"
#include "core/bits.hpp"
#include "troupe/log.hpp"

// A stage's part in a training step (see StageMachine for what may happen when):
//
//   Forward (activations, batch fields) ->  forward   -> Forward to the next reader of each output,
//                                                        LossReport to the pipeline
//   Gradient (from the next readers)    ->  backward  -> Gradient to where its inputs came from,
//                                                        MicroBatchDone to the pipeline
//   (after the last backward)           ->  summarise -> StepReport to the optimizer
//   StepDecision (from the optimizer)   ->  update    -> StepCommitted to the optimizer
//
// Credit: the receipt of a value is held until its backward is done, since the executor keeps the
// value that long; until its forward is done in evaluation, and under GPipe, which holds a whole
// step by definition and would otherwise wait for credit that only later micro-batches free. The
// receipt of a gradient is held until the backward that uses it is done.

namespace troupe::mp {

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
  machine_.emplace(std::move(shape));
  inbox_.emplace(config);
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
  TROUPE_TRY(machine_->value_arrived(key, inbound, header.micro_batches(), delivery.unit));
  return inbox_->keep_value(key, inbound, header, std::move(value).value(), delivery);
}

Result<void> StageState::take_gradient(const MicroBatchKey& key, const v1::Message& message,
                                       const Delivery& delivery) {
  TROUPE_ASSIGN(const std::size_t outbound,
                inbox_->find_outbound(message.key().value(), delivery.from));
  auto gradient = make_value(message.gradient().tensor(), delivery.payload);
  if (!gradient)
    return internal_error(to_string(key), "gradient of " + describe(message.key().value()) + ": " +
                                              gradient.error().what);
  TROUPE_TRY(machine_->gradient_arrived(key, outbound));
  inbox_->keep_gradient(key, outbound, std::move(gradient).value(), delivery);
  return {};
}

Result<void> StageState::take_decision(std::uint64_t step, const v1::StepDecision& decision) {
  TROUPE_TRY(machine_->decision_arrived(step, decision.accumulate()));
  decision_ = decision;
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
      actor_.compute(
          caf::make_message(RunBackward{{held.micro_batch, std::exchange(held.gradients, {})}}));
      break;
    }
    case StageOperation::summarise: actor_.compute(caf::make_message(SummariseGradients{})); break;
    case StageOperation::update:
      actor_.compute(caf::make_message(
          RunUpdate{{{decision_.lr().begin(), decision_.lr().end()}, decision_.scale()}}));
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
  current_.reset();
  machine_->operation_done(gradients_expected);
  advance();
}

void StageState::forward_done(const ExecutorDone<ForwardOutcome>& done) {
  if (!accept(done)) return;
  const auto key = current_->micro_batch;
  const auto& outcome = *done.result;
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
  actor_.postbox.send_control(optimizer_, message);  // [life:9]
  go_on();
}

void StageState::nothing_done(const ExecutorDone<Nothing>& done) {
  if (!accept(done)) return;
  if (current_->operation == StageOperation::update) {
    commit(current_->micro_batch.step);
  } else {
    const auto request = std::move(state_requests_.front());
    state_requests_.pop_front();
    if (request.kind == StateRequest::Kind::import_end) {
      auto message = message_about({});
      message.mutable_state_loaded()->set_stage(config_.stage());
      *message.mutable_state_loaded()->mutable_fingerprint() = *fingerprint_;
      actor_.postbox.send_control(request.client, message);
    }
  }
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
    case StageOperation::summarise:
    case StageOperation::update:
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
  state_requests_.clear();
  actor_.compute(caf::make_message(DiscardAll{}));
}

}  // namespace troupe::mp
