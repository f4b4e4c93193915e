#include "actors/pipeline_client.hpp"

#include <optional>
#include <utility>

#include <caf/actor_system.hpp>

namespace troupe::mp {

PipelineClient::PipelineClient(JobSession& session, caf::actor pipeline)
    : session_(session), self_(session.system()), pipeline_(std::move(pipeline)) {
  self_->monitor(pipeline_);
}

template <class T, class Command>
Result<T> PipelineClient::ask(Command command) {
  self_->send(pipeline_, std::move(command));
  if (session_.run_pending() && self_->mailbox().empty())
    return internal_error("pipeline", "nothing can happen any more, and no answer came");
  std::optional<Result<T>> answer;
  self_->receive(
      [&](Reply<T>& reply) {
        if (reply.error)
          answer.emplace(std::move(*reply.error));
        else
          answer.emplace(std::move(reply.value));
      },
      [&](const caf::down_msg&) {
        answer.emplace(internal_error("pipeline", "the pipeline actor terminated"));
      });
  return std::move(*answer);
}

Result<StepOutcome> PipelineClient::train_step() { return ask<StepOutcome>(TrainStep{}); }

Result<EvaluationOutcome> PipelineClient::evaluate() { return ask<EvaluationOutcome>(Evaluate{}); }

Result<HostTensor> PipelineClient::predict() { return ask<HostTensor>(Predict{}); }

Result<HostTensor> PipelineClient::predict(const HostTensor& inputs,
                                           std::uint32_t micro_batch_size) {
  return ask<HostTensor>(PredictBatch{inputs, micro_batch_size});
}

Result<HostTensor> PipelineClient::forward(const HostTensor& inputs,
                                           std::uint32_t micro_batch_size) {
  return ask<HostTensor>(ForwardBatch{inputs, micro_batch_size});
}

Result<void> PipelineClient::backward(const HostTensor& output_gradient) {
  TROUPE_TRY(ask<Done>(BackwardBatch{output_gradient}));
  return {};
}

Result<StepOutcome> PipelineClient::apply_step() { return ask<StepOutcome>(ApplyStep{}); }

Result<TensorMap> PipelineClient::export_model() { return ask<TensorMap>(ExportModel{}); }

Result<ModelImported> PipelineClient::import_model(
    std::map<std::uint32_t, std::vector<NamedTensor>> tensors) {
  return ask<ModelImported>(ImportModel{std::move(tensors)});
}

}  // namespace troupe::mp
