#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/layer_settings.hpp"
#include "core/value_ref.hpp"
#include "troupe/address.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Names under which the plugin's actors are bound.
inline constexpr const char* pipeline_actor = "pipeline";
inline constexpr const char* optimizer_actor = "optimizer";
inline constexpr const char* data_actor = "data";
/// "stage.3".
std::string stage_actor_name(std::uint32_t stage);

/// Factory of stage actors, configured by a StageConfig.
inline constexpr const char* stage_factory = "model_parallel.stage";

/// What a plan is made from.
struct PlanRequest {
  std::string job;
  std::uint64_t generation = 0;
  std::uint64_t seed = 0;
  std::vector<v1::Layer> layers;   ///< the model, in order, as the catalog lists it
  std::vector<v1::Stage> stages;   ///< as the job file has them
  std::vector<std::string> nodes;  ///< that the job declares
  /// Appended as the last layer. Without one the outputs of the last layer go to the driver's
  /// pipeline actor.
  std::optional<v1::Loss> loss;
  v1::Schedule schedule = v1::SCHEDULE_UNSPECIFIED;
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  LayerRules rules;  ///< on layers by name
  /// Set by a job that says how its loss is scaled; without it PRECISION_FLOAT16 has the defaults.
  std::optional<v1::LossScaling> loss_scaling;
  std::optional<v1::Optimizer> optimizer;  ///< needed when training
  bool train = true;
  v1::BatchNormStatistics batch_norm = v1::BATCH_NORM_UNSPECIFIED;
  std::vector<std::string> layer_libraries;
  /// Turns the path of a field ("stages[1].first_layer") into what errors name as their place;
  /// the path itself when not given.
  std::function<std::string(const std::string& path)> locate;
};

/// A stage of a plan: what its node is told, and its size.
struct PlannedStage {
  v1::StageConfig config;
  ActorAddress address;
  std::uint64_t parameters = 0;    ///< number of elements; tied ones are their owners'
  std::uint64_t weight_bytes = 0;  ///< parameters and buffers
  /// These, and gradients and optimizer state of weights that are trained. Activations and copies
  /// that kernels keep in layouts of their own come on top.
  std::uint64_t training_bytes = 0;
};

/// Where everything goes.
struct Plan {
  std::vector<PlannedStage> stages;
  /// Which stages read each field of the batch, in order.
  std::map<std::string, std::vector<ActorAddress>> fields;
  /// Stage with the loss layer, if there is one.
  std::optional<std::uint32_t> loss_stage;
  /// Names of all parameters, in the model's order; tied ones have their place too.
  std::vector<std::string> parameters;
  /// How the loss is scaled, if it is.
  std::optional<v1::LossScaling> loss_scaling;
};

/// Cuts the model into stages and works out which value goes where. Layers form a graph: each reads
/// outputs of any earlier layers and fields of the batch, also across several stages.
///
/// A value that several stages read passes from one to the next: each reader gets it from, and
/// returns its gradient to, the nearest earlier stage that has it. So gradients are added from the
/// last reader to the first in one chain, as the backward of an uncut model reaches them; stages
/// that do not read a value never see it.
Result<Plan> make_plan(const PlanRequest& request);

/// Checks that every field of the batch which a layer reads is among `available`; an error names
/// the layer's place.
Result<void> check_fields(const Plan& plan, const std::vector<std::string>& available,
                          const std::function<std::string(const std::string&)>& locate);

/// What `troupe check` prints: a table of the stages and the ideal bubble with this many
/// micro-batches in a step.
std::string render_plan(const Plan& plan, std::uint32_t micro_batches);

}  // namespace troupe::mp
