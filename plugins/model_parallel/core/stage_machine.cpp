#include "core/stage_machine.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::mp {
namespace {

Error protocol_error(const MicroBatchKey& key, std::string what) {
  return internal_error(to_string(key), std::move(what));
}

}  // namespace

std::string describe_step(v1::Key::Kind kind, std::uint64_t step) {
  const auto number = std::to_string(step);
  switch (kind) {
    case v1::Key::KIND_TRAIN: return "train step " + number;
    case v1::Key::KIND_EVAL: return "evaluation " + number;
    case v1::Key::KIND_INFER: return "prediction " + number;
    case v1::Key::KIND_PROFILE: return "profile " + number;
    default: return "step " + number + " of unknown kind";
  }
}

std::string to_string(const MicroBatchKey& key) {
  return describe_step(key.kind, key.step) + ", micro-batch " + std::to_string(key.index);
}

StageMachine::StageMachine(const Shape& shape)
    : shape_(shape), schedule_(shape_.schedule, shape_.stage, shape_.stage_count) {}

bool StageMachine::finished(const StepKey& key) const {
  const auto last = last_finished_.find(key.first);
  return last != last_finished_.end() && key.second <= last->second;
}

Result<void> StageMachine::value_arrived(const MicroBatchKey& key, std::size_t inbound,
                                         std::uint32_t micro_batches, std::uint64_t unit) {
  const bool training = key.kind == v1::Key::KIND_TRAIN;
  if (!training && key.kind != v1::Key::KIND_EVAL && key.kind != v1::Key::KIND_INFER)
    return protocol_error(key, "a value of a kind that stages do not run");
  if (training && !shape_.train)
    return protocol_error(key, "a training value for a stage set up for forward only");
  if (inbound >= shape_.inbound)
    return protocol_error(key, "a value that this stage does not read");
  if (micro_batches == 0 || key.index >= micro_batches)
    return protocol_error(key,
                          "a micro-batch outside its step of " + std::to_string(micro_batches));
  const StepKey step_key{key.kind, key.step};
  if (finished(step_key)) return protocol_error(key, "a value for a step that is finished");

  const auto known = steps_.find(step_key);
  if (known != steps_.end()) {
    const auto& step = known->second;
    if (step.micro_batches != micro_batches)
      return protocol_error(key, "the step has " + std::to_string(step.micro_batches) +
                                     " micro-batches by one message and " +
                                     std::to_string(micro_batches) + " by another");
    const auto here = step.micro_batches_here.find(key.index);
    const bool duplicate = key.index < step.forwards_done ||
                           (here != step.micro_batches_here.end() && here->second.values[inbound]);
    if (duplicate) return protocol_error(key, "the same value twice");
  }

  auto& step = known != steps_.end() ? known->second : steps_[step_key];
  step.unit = known != steps_.end() ? std::min(step.unit, unit) : unit;
  step.micro_batches = micro_batches;
  if (known == steps_.end()) step.tied_values = Arrivals(shape_.tied_values);
  auto [place, added] = step.micro_batches_here.try_emplace(key.index);
  auto& micro_batch = place->second;
  if (added) {
    micro_batch.values.assign(shape_.inbound, false);
    micro_batch.values_missing = shape_.inbound;
  }
  micro_batch.values[inbound] = true;
  --micro_batch.values_missing;
  return {};
}

Result<void> StageMachine::gradient_arrived(const MicroBatchKey& key, std::size_t outbound) {
  const auto step = steps_.find({key.kind, key.step});
  const bool forwarded = key.kind == v1::Key::KIND_TRAIN && step != steps_.end() &&
                         key.index < step->second.forwards_done &&
                         key.index >= step->second.backwards_done;
  if (!forwarded)
    return protocol_error(key,
                          "a gradient for a micro-batch that is not between its forward and "
                          "its backward");
  auto& micro_batch = step->second.micro_batches_here.at(key.index);
  if (outbound >= micro_batch.gradients.size())
    return protocol_error(key, "a gradient for a value that this stage does not send");
  if (micro_batch.gradients[outbound])
    return protocol_error(key, "a gradient twice, or for a value that needs none");
  micro_batch.gradients[outbound] = true;
  --micro_batch.gradients_missing;
  return {};
}

bool StageMachine::Arrivals::add(std::size_t index) {
  if (index >= here_.size() || here_[index]) return false;
  here_[index] = true;
  --missing_;
  return true;
}

Result<void> StageMachine::tied_gradient_arrived(std::uint64_t step, std::size_t index) {
  const StepKey key{v1::Key::KIND_TRAIN, step};
  const auto place = finished(key) ? tied_gradients_.end()
                                   : tied_gradients_.try_emplace(step, shape_.tied_gradients).first;
  // Once they are collected they are complete, and another is one too many.
  if (place != tied_gradients_.end() && place->second.add(index)) return {};
  return internal_error(describe_step(key.first, step),
                        "a tied gradient that this stage does not await");
}

Result<void> StageMachine::tied_value_arrived(std::uint64_t step, std::size_t index) {
  const StepKey key{v1::Key::KIND_TRAIN, step};
  // Its owner has the decision on all stages' reports, this stage's among them.
  const bool reported = active_ == key && steps_.at(key).phase >= Phase::deciding;
  if (reported && steps_.at(key).tied_values.add(index)) return {};
  return internal_error(describe_step(key.first, step),
                        "a tied value that this stage does not await");
}

Result<void> StageMachine::decision_arrived(std::uint64_t step, bool accumulate, bool skip) {
  const StepKey key{v1::Key::KIND_TRAIN, step};
  const bool awaited =
      active_ == key && steps_.at(key).phase == Phase::deciding && !steps_.at(key).decided;
  if (!awaited)
    return internal_error(describe_step(key.first, step),
                          "a decision that this stage does not await");
  steps_.at(key).decided = true;
  steps_.at(key).skipped = skip;
  if (accumulate) finish_step();
  return {};
}

void StageMachine::operation_done(const std::vector<bool>& gradients_expected) {
  assert(running_ && "completions come once, for the operation that runs");
  const auto action = *running_;
  running_.reset();
  if (action.operation == StageOperation::state) return;

  auto& step = steps_.at(*active_);
  switch (action.operation) {
    case StageOperation::forward: {
      const auto index = step.forwards_done++;
      if (action.micro_batch.kind != v1::Key::KIND_TRAIN) {
        step.micro_batches_here.erase(index);
        if (step.forwards_done == step.micro_batches) finish_step();
        break;
      }
      auto& micro_batch = step.micro_batches_here.at(index);
      micro_batch.gradients.assign(shape_.outbound, true);
      for (std::size_t value = 0; value < shape_.outbound; ++value) {
        if (value >= gradients_expected.size() || !gradients_expected[value]) continue;
        micro_batch.gradients[value] = false;
        ++micro_batch.gradients_missing;
      }
      break;
    }
    case StageOperation::backward:
      step.micro_batches_here.erase(step.backwards_done++);
      if (step.backwards_done == step.micro_batches)
        step.phase = shape_.tied_gradients != 0 ? Phase::collecting : Phase::summarising;
      break;
    case StageOperation::collect: step.phase = Phase::summarising; break;
    case StageOperation::summarise: step.phase = Phase::deciding; break;
    case StageOperation::update: after_update(step, false); break;
    case StageOperation::publish: after_update(step, true); break;
    case StageOperation::install: finish_step(); break;
    case StageOperation::state: break;
  }
}

void StageMachine::after_update(Step& step, bool published) {
  if (shape_.publishes && !published && !step.skipped)
    step.phase = Phase::publishing;
  else if (shape_.tied_values != 0 && !step.skipped)
    step.phase = Phase::installing;
  else
    finish_step();
}

void StageMachine::finish_step() {
  if (active_->first == v1::Key::KIND_TRAIN) tied_gradients_.erase(active_->second);
  last_finished_[active_->first] = active_->second;
  steps_.erase(*active_);
  active_.reset();
}

std::optional<StageAction> StageMachine::next() {
  if (running_) return std::nullopt;
  if (!active_) {
    if (state_requests_ > 0) {
      --state_requests_;
      running_ = StageAction{StageOperation::state, {}};
      return running_;
    }
    const auto oldest = std::min_element(
        steps_.begin(), steps_.end(),
        [](const auto& a, const auto& b) { return a.second.unit < b.second.unit; });
    if (oldest == steps_.end()) return std::nullopt;
    active_ = oldest->first;
  }
  auto& step = steps_.at(*active_);
  running_ = next_of_step(*active_, step);
  if (running_ && running_->operation == StageOperation::update) step.phase = Phase::updating;
  return running_;
}

std::optional<StageAction> StageMachine::next_of_step(const StepKey& key, Step& step) const {
  const auto action = [&](StageOperation operation, std::uint32_t index) {
    return StageAction{operation, MicroBatchKey{key.first, key.second, index}};
  };
  const auto values_here = [&] {
    const auto found = step.micro_batches_here.find(step.forwards_done);
    return found != step.micro_batches_here.end() && found->second.values_missing == 0;
  };
  if (key.first != v1::Key::KIND_TRAIN) {
    if (values_here()) return action(StageOperation::forward, step.forwards_done);
    return std::nullopt;
  }
  switch (step.phase) {
    case Phase::computing:
      if (schedule_.may_backward(step.forwards_done, step.backwards_done, step.micro_batches) &&
          step.micro_batches_here.at(step.backwards_done).gradients_missing == 0)
        return action(StageOperation::backward, step.backwards_done);
      if (schedule_.may_forward(step.forwards_done, step.backwards_done, step.micro_batches) &&
          values_here())
        return action(StageOperation::forward, step.forwards_done);
      return std::nullopt;
    case Phase::collecting: {
      const auto tied = tied_gradients_.find(key.second);
      if (tied != tied_gradients_.end() && tied->second.complete())
        return action(StageOperation::collect, 0);
      return std::nullopt;
    }
    case Phase::summarising: return action(StageOperation::summarise, 0);
    case Phase::deciding:
      if (step.decided) return action(StageOperation::update, 0);
      return std::nullopt;
    case Phase::updating: return std::nullopt;
    case Phase::publishing: return action(StageOperation::publish, 0);
    case Phase::installing:
      if (step.tied_values.complete()) return action(StageOperation::install, 0);
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace troupe::mp
