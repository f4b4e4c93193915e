#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <caf/actor.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/driver_messages.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {

/// Gives commands to a pipeline actor and blocks for their answers. One thread.
class PipelineClient {
 public:
  PipelineClient(JobSession& session, caf::actor pipeline);

  Result<StepOutcome> train_step();
  Result<EvaluationOutcome> evaluate();
  Result<HostTensor> predict();
  Result<HostTensor> predict(const HostTensor& inputs, std::uint32_t micro_batch_size);
  Result<HostTensor> forward(const HostTensor& inputs, std::uint32_t micro_batch_size);
  Result<void> backward(const HostTensor& output_gradient);
  Result<StepOutcome> apply_step();
  Result<TensorMap> export_model();
  Result<ModelImported> import_model(std::map<std::uint32_t, std::vector<NamedTensor>> tensors);

 private:
  template <class T, class Command>
  Result<T> ask(Command command);

  JobSession& session_;
  caf::scoped_actor self_;
  caf::actor pipeline_;
};

}  // namespace troupe::mp
