#include <utility>

#include "actors/driver.hpp"
#include "core/model_catalog.hpp"
#include "core/optimizer_config.hpp"
#include "core/plan.hpp"
#include "troupe/model_parallel/pipeline.hpp"

namespace troupe::mp {

Pipeline::~Pipeline() = default;

namespace {

/// A driver in which every step is decided by the caller.
class DrivenPipeline : public Pipeline {
 public:
  explicit DrivenPipeline(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}

  Result<HostTensor> forward(const HostTensor& inputs, std::uint32_t micro_batch_size) override {
    TROUPE_TRY(inputs.validate());
    return driver_->pipeline().forward(inputs, micro_batch_size);
  }

  Result<void> backward(const HostTensor& output_gradient) override {
    TROUPE_TRY(output_gradient.validate());
    return driver_->pipeline().backward(output_gradient);
  }

  Result<double> step() override {
    TROUPE_ASSIGN(const StepOutcome outcome, driver_->pipeline().apply_step());
    return outcome.grad_norm;
  }

  Result<HostTensor> predict(const HostTensor& inputs, std::uint32_t micro_batch_size) override {
    TROUPE_TRY(inputs.validate());
    return driver_->pipeline().predict(inputs, micro_batch_size);
  }

  Result<TensorMap> state() override { return driver_->pipeline().export_model(); }

  Result<void> load_state(const TensorMap& tensors) override {
    return driver_->load_state(tensors, false, "load_state");
  }

 private:
  std::unique_ptr<Driver> driver_;
};

/// Where errors say that a field of the options stands.
std::string in_options(const std::string& path) { return "spawn_pipeline: " + path; }

Result<Plan> plan_of(const JobSession& session, const PipelineOptions& options) {
  PlanRequest request;
  request.job = session.job().name();
  request.generation = 1;
  request.seed = options.seed;
  TROUPE_ASSIGN(request.layers, list_layers(options.model));
  request.stages = options.stages;
  for (const auto& node : session.job().nodes()) request.nodes.push_back(node.name());
  request.schedule = options.schedule;
  request.precision = options.precision;
  request.rules = {options.recompute, options.wire};
  request.optimizer = options.optimizer;
  request.batch_norm = options.batch_norm;
  request.layer_libraries = options.layer_libraries;
  request.locate = in_options;
  TROUPE_ASSIGN(Plan plan, make_plan(request));
  // The caller gives one tensor, the inputs.
  TROUPE_TRY(check_fields(plan, {"inputs"}, request.locate));
  return plan;
}

}  // namespace

Result<std::unique_ptr<Pipeline>> spawn_pipeline(JobSession& session,
                                                 const PipelineOptions& options) {
  if (options.schedule != v1::SCHEDULE_GPIPE)
    return bad_input("spawn_pipeline", "forward and backward are separate calls here",
                     "use SCHEDULE_GPIPE");
  TROUPE_TRY(check_clip_grad_norm(options.clip_grad_norm, "spawn_pipeline"));
  TROUPE_ASSIGN(const Plan plan, plan_of(session, options));
  DriverOptions driver;
  driver.schedule = options.schedule;
  TROUPE_ASSIGN(driver.learning_rates, learning_rates(options.optimizer, RunLength(), in_options));
  driver.clip_grad_norm = options.clip_grad_norm;
  driver.wait_for_driver = true;
  driver.allow_mixed_numerics = options.allow_mixed_numerics;
  TROUPE_ASSIGN(auto started, Driver::start(session, plan, std::move(driver)));
  return std::unique_ptr<Pipeline>(std::make_unique<DrivenPipeline>(std::move(started)));
}

}  // namespace troupe::mp
