#include "actors/driver.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <nlohmann/json.hpp>

#include "actors/optimizer_actor.hpp"
#include "actors/pipeline_actor.hpp"
#include "core/state_split.hpp"
#include "core/thread_share.hpp"

namespace troupe::mp {
namespace {

std::vector<ActorAddress> stage_addresses(const Plan& plan) {
  std::vector<ActorAddress> addresses;
  for (const auto& stage : plan.stages) addresses.push_back(stage.address);
  return addresses;
}

/// Writes a number where the job leaves the threads of a stage open.
void settle_threads(const JobSession& session, Plan& plan) {
  const auto shares =
      thread_shares(session.job(), session.nodes(), std::thread::hardware_concurrency());
  for (auto& stage : plan.stages)
    if (stage.config.threads() == 0) stage.config.set_threads(shares.at(stage.address.node));
}

const runtime::v1::NumericFingerprint& fingerprint_of(const JobSession& session,
                                                      const std::string& name) {
  const auto& nodes = session.nodes();
  return std::find_if(nodes.begin(), nodes.end(),
                      [&](const auto& node) { return node.name() == name; })
      ->fingerprint();
}

}  // namespace

Driver::Driver(JobSession& session, const Plan& plan) : session_(session), plan_(plan) {
  settle_threads(session_, plan_);
}

Result<std::unique_ptr<Driver>> Driver::start(JobSession& session, const Plan& plan,
                                              DriverOptions options) {
  std::unique_ptr<Driver> driver(new Driver(session, plan));
  const bool allow_mixed_numerics = options.allow_mixed_numerics;
  // A stage reports to the pipeline actor from its first moment on, so that one comes first.
  driver->spawn_local_actors(std::move(options));
  TROUPE_TRY(driver->spawn_stages());
  TROUPE_TRY(driver->check_numerics(allow_mixed_numerics));
  return driver;
}

void Driver::spawn_local_actors(DriverOptions options) {
  auto& system = session_.system();
  const auto& mailer = session_.mailer();
  const auto& first = plan_.stages.front().config;

  DataActorConfig data;
  data.mailer = mailer;
  data.job = first.job();
  data.generation = first.generation();
  data.policy = session_.policy();
  data.readers = plan_.fields;
  if (plan_.loss_stage) data.count = TargetCount(plan_.stages[*plan_.loss_stage].config.loss());

  PipelineActorConfig pipeline;
  pipeline.mailer = mailer;
  pipeline.job = first.job();
  pipeline.generation = first.generation();
  pipeline.stages = stage_addresses(plan_);
  pipeline.schedule = options.schedule;
  pipeline.batches_in_step = options.batches_in_step;
  for (const auto& [kind, feed] : options.feeds) {
    if (kind == v1::Key::KIND_EVAL) pipeline.evaluation_batches = feed.plan.batches;
    if (kind == v1::Key::KIND_INFER) pipeline.prediction_batches = feed.plan.batches;
  }
  data.feeds = std::move(options.feeds);

  OptimizerActorConfig optimizer;
  optimizer.mailer = mailer;
  optimizer.job = first.job();
  optimizer.generation = first.generation();
  optimizer.pipeline = {mailer.node(), pipeline_actor};
  optimizer.stages = pipeline.stages;
  optimizer.parameters = plan_.parameters;
  optimizer.learning_rates = std::move(options.learning_rates);
  optimizer.clip_grad_norm = options.clip_grad_norm;
  optimizer.loss_scaling = plan_.loss_scaling;
  optimizer.wait_for_driver = options.wait_for_driver;

  data_ = spawn_data_actor(system, std::move(data));
  optimizer_ = spawn_optimizer(system, std::move(optimizer));
  pipeline.data = data_;
  pipeline.optimizer = optimizer_;
  pipeline_ = spawn_pipeline_actor(system, std::move(pipeline));
  mailer.bind(data_actor, data_);
  mailer.bind(optimizer_actor, optimizer_);
  mailer.bind(pipeline_actor, pipeline_);
  session_.subscribe(pipeline_);
  client_ = std::make_unique<PipelineClient>(session_, pipeline_);
}

Result<void> Driver::spawn_stages() {
  for (const auto& stage : plan_.stages)
    TROUPE_TRY(session_.spawn(stage.address, stage_factory, stage.config));
  return wait_until_ready();
}

/// An import of nothing is answered once the stage has its layers: errors of devices and weights
/// surface here, and the first step is not charged with what the stages need to begin. The answer
/// tells what each stage computes with.
Result<void> Driver::wait_until_ready() {
  std::map<std::uint32_t, std::vector<NamedTensor>> nothing;
  for (const auto& stage : plan_.stages) nothing[stage.config.stage()];
  TROUPE_ASSIGN(const ModelImported ready, client_->import_model(std::move(nothing)));
  for (const auto& stage : plan_.stages) {
    const auto& node = stage.address.node;
    numerics_.push_back(
        {stage.config.stage(), node, stage.config.device(),
         merge(fingerprint_of(session_, node), ready.fingerprints.at(stage.config.stage()))});
  }
  return {};
}

Result<void> Driver::check_numerics(bool allow_mixed) const {
  const auto differences = numeric_differences(numerics_);
  if (differences.empty()) return {};
  if (!allow_mixed)
    return bad_input(
        "nodes of job " + session_.job().name(), "the nodes differ: " + differences,
        "set allow_mixed_numerics: true; the bits then depend on where each stage runs");
  session_.console().line("the nodes differ: " + differences +
                          "; the bits depend on where each stage runs");
  session_.record_event(
      nlohmann::json{{"event", "mixed_numerics"}, {"differences", differences}}.dump());
  return {};
}

Result<void> Driver::load_state(const TensorMap& tensors, bool complete, const std::string& where) {
  TROUPE_ASSIGN(auto by_stage, split_state(plan_, tensors, complete, where));
  TROUPE_TRY(client_->import_model(std::move(by_stage)));
  return {};
}

Driver::~Driver() {
  client_.reset();
  for (const auto* name : {pipeline_actor, optimizer_actor, data_actor})
    session_.mailer().unbind(name);
  for (const auto& actor : {pipeline_, optimizer_, data_})
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

}  // namespace troupe::mp
