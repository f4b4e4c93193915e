#include "troupe/plugin.hpp"

#include <string>

#include "actors/stage_actor.hpp"
#include "core/plan.hpp"
#include "jobs/generate_runner.hpp"
#include "jobs/predict_runner.hpp"
#include "jobs/train_runner.hpp"
#include "troupe/model_parallel/v1/generate_job.pb.h"
#include "troupe/model_parallel/v1/train_job.pb.h"

namespace troupe::mp {
namespace {

Result<void> register_all(Registry& registry) {
  TROUPE_TRY(registry.add_actor(stage_factory, spawn_stage));
  TROUPE_TRY(registry.add_job(*v1::TrainJob::descriptor(), make_train_runner));
  TROUPE_TRY(registry.add_job(*v1::PredictJob::descriptor(), make_predict_runner));
  TROUPE_TRY(registry.add_job(*v1::GenerateJob::descriptor(), make_generate_runner));
  return {};
}

bool register_plugin(Registry& registry, std::string* error) {
  const auto registered = register_all(registry);
  if (!registered) *error = registered.error().to_string();
  return registered.ok();
}

constexpr const char* packages[] = {"troupe.model_parallel.v1", nullptr};

constexpr PluginDescriptor descriptor = {plugin_abi_version, "troupe_mp", "0.1.0", packages,
                                         register_plugin};

}  // namespace
}  // namespace troupe::mp

TROUPE_PLUGIN_ENTRY { return &troupe::mp::descriptor; }
