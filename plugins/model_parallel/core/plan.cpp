#include "core/plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/layer_cut.hpp"
#include "core/layer_library_names.hpp"
#include "core/layer_reads.hpp"
#include "core/loss_config.hpp"
#include "core/loss_scaler.hpp"
#include "core/optimizer_config.hpp"
#include "core/precision.hpp"
#include "core/schedule.hpp"
#include "core/tied_weights.hpp"

namespace troupe::mp {
namespace {

std::uint32_t output_count(const v1::Layer& layer) {
  return layer.outputs() == 0 ? 1 : layer.outputs();
}

v1::Layer make_loss_layer(const v1::Loss& loss, const v1::Layer& last) {
  v1::Layer layer;
  layer.set_name(loss_layer);
  set_loss_kind(loss, layer);
  *layer.add_reads() = output_of(last.name(), 0);
  *layer.add_reads() = batch_field("targets");
  return layer;
}

/// The layers with every read written out and checked, and the loss appended.
Result<std::vector<v1::Layer>> resolve_layers(const PlanRequest& request, const Locate& locate) {
  auto layers = request.layers;
  if (layers.empty()) return bad_input(locate("model"), "the model has no layers");
  if (request.loss) {
    TROUPE_TRY(check_loss(*request.loss, locate));
    layers.push_back(make_loss_layer(*request.loss, layers.back()));
  }

  OutputCounts outputs;  // of the layers before
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& layer = layers[i];
    const auto path = "model.layers.layers[" + std::to_string(i) + "]";
    const auto where = locate(path);
    if (layer.name().empty()) return bad_input(where, "a layer without a name");
    if (outputs.count(layer.name()) != 0)
      return bad_input(where, "two layers are called \"" + layer.name() + "\"",
                       layer.name() == loss_layer ? "the name belongs to the loss" : "");
    layer.set_outputs(output_count(layer));
    if (layer.reads().empty()) {
      if (i == 0) *layer.add_reads() = batch_field("inputs");
      if (i != 0)
        for (std::uint32_t slot = 0; slot < layers[i - 1].outputs(); ++slot)
          *layer.add_reads() = output_of(layers[i - 1].name(), slot);
    }
    if (auto reads = check_reads(layer, path, outputs); !reads) {
      auto error = std::move(reads).error();
      error.where = locate(error.where);
      return error;
    }
    outputs.emplace(layer.name(), layer.outputs());
  }
  TROUPE_TRY(resolve_tied(layers, locate));
  return layers;
}

/// Without a loss the driver gets the outputs of the last layer: one tensor.
Result<void> check_outputs(const PlanRequest& request, const std::vector<v1::Layer>& layers,
                           const Locate& locate) {
  if (request.loss || layers.back().outputs() == 1) return {};
  return bad_input(locate("model.layers.layers[" + std::to_string(layers.size() - 1) + "].outputs"),
                   "the last layer, \"" + layers.back().name() + "\", has " +
                       std::to_string(layers.back().outputs()) + " outputs",
                   "the result of a model is one value: end with a layer of one output");
}

/// What ranges say of job files holds for every stage, whoever wrote it.
Result<void> check_stage_numbers(const v1::Stage& stage, const std::string& path,
                                 const Locate& locate) {
  constexpr std::uint32_t most_threads = 1024;
  if (stage.threads() > most_threads)
    return bad_input(locate(path + ".threads"), std::to_string(stage.threads()) + " threads",
                     "at most " + std::to_string(most_threads));
  if (!std::isfinite(stage.slow_down_seconds()) || stage.slow_down_seconds() < 0)
    return bad_input(locate(path + ".slow_down_seconds"),
                     "slow_down_seconds is " + std::to_string(stage.slow_down_seconds()),
                     "write a finite number, at least 0");
  return {};
}

std::string device_of(const v1::Stage& stage) {
  return stage.device().empty() ? "cpu" : stage.device();
}

Result<void> check_stages(const PlanRequest& request, const Locate& locate) {
  for (std::size_t s = 0; s < request.stages.size(); ++s) {
    const auto path = "stages[" + std::to_string(s) + "]";
    TROUPE_TRY(check_stage_numbers(request.stages[s], path, locate));
    TROUPE_TRY(
        check_precision(request.precision, device_of(request.stages[s]), locate(path + ".device")));
    const auto& node = request.stages[s].node();
    if (std::find(request.nodes.begin(), request.nodes.end(), node) != request.nodes.end())
      continue;
    std::string known;
    for (const auto& name : request.nodes) known += (known.empty() ? "\"" : ", \"") + name + "\"";
    return bad_input(locate(path + ".node"),
                     "stage " + std::to_string(s) + " is on node \"" + node +
                         "\", which the job does not declare",
                     "declared are " + known);
  }
  return {};
}

Result<std::uint64_t> elements_of(const v1::Parameter& tensor) {
  auto count = element_count(Shape(tensor.shape().begin(), tensor.shape().end()));
  if (!count) return bad_input("parameter \"" + tensor.name() + "\"", count.error().what);
  return count;
}

/// Fills in the sizes of a stage whose layers are set. Of a tied parameter a stage holds the values
/// once, a gradient for each use, and the optimizer's state where it is owned; the owner's stage
/// holds the sum of the gradients too.
Result<void> measure_stage(PlannedStage& stage) {
  const auto& config = stage.config;
  const std::uint64_t element = element_size(master_type(config.precision()));
  std::uint64_t buffer_bytes = 0;
  std::uint64_t shared = 0;  // elements of values that another stage owns
  std::uint64_t uses = 0;    // elements of gradients besides those of owned parameters
  std::set<std::string> held;
  for (const auto& layer : config.layers()) {
    for (const auto& parameter : layer.parameters()) {
      TROUPE_ASSIGN(const std::uint64_t elements, elements_of(parameter));
      if (parameter.tied_to().empty()) {
        stage.parameters += elements;
        held.insert(parameter.name());
        continue;
      }
      uses += elements;
      if (held.insert(parameter.tied_to()).second) shared += elements;
    }
    for (const auto& buffer : layer.buffers()) {
      TROUPE_ASSIGN(const std::uint64_t elements, elements_of(buffer));
      buffer_bytes += elements * (buffer.integer() ? sizeof(std::int64_t) : element);
    }
  }
  stage.weight_bytes = (stage.parameters + shared) * element + buffer_bytes;
  stage.training_bytes = stage.weight_bytes;
  if (config.train() && !config.frozen()) {
    const std::size_t kept = state_per_element(config.optimizer_config());
    stage.training_bytes += (stage.parameters * (1 + kept) + uses) * element;
  }
  return {};
}

/// Everything of a stage's config except the values that cross its borders.
v1::StageConfig base_config(const PlanRequest& request, std::uint32_t s) {
  const auto& stage = request.stages[s];
  v1::StageConfig config;
  config.set_job(request.job);
  config.set_generation(request.generation);
  config.set_stage(s);
  config.set_stage_count(static_cast<std::uint32_t>(request.stages.size()));
  config.mutable_pipeline()->set_node(driver_node);
  config.mutable_pipeline()->set_actor(pipeline_actor);
  config.mutable_optimizer()->set_node(driver_node);
  config.mutable_optimizer()->set_actor(optimizer_actor);
  config.set_schedule(request.schedule == v1::SCHEDULE_UNSPECIFIED ? v1::SCHEDULE_ONE_F_ONE_B
                                                                   : request.schedule);
  config.set_precision(precision_or_default(request.precision));
  config.set_seed(request.seed);
  if (request.optimizer) *config.mutable_optimizer_config() = *request.optimizer;
  config.set_device(device_of(stage));
  config.set_threads(stage.threads());
  config.set_frozen(stage.frozen());
  config.set_train(request.train);
  config.set_batch_norm(request.batch_norm == v1::BATCH_NORM_UNSPECIFIED
                            ? v1::BATCH_NORM_PER_MICRO_BATCH
                            : request.batch_norm);
  config.set_slow_down_seconds(stage.slow_down_seconds());
  for (const auto& library : request.layer_libraries) config.add_layer_libraries(library);
  return config;
}

v1::StageConfig::Address address_of(const ActorAddress& actor) {
  v1::StageConfig::Address address;
  address.set_node(actor.node);
  address.set_actor(actor.actor);
  return address;
}

v1::StageConfig::Outbound* send(v1::StageConfig& holder, const v1::ValueRef& value,
                                const ActorAddress& reader) {
  auto* outbound = holder.add_outbound();
  *outbound->mutable_value() = value;
  *outbound->mutable_reader() = address_of(reader);
  return outbound;
}

/// Works out what crosses the borders between stages, visiting layers in order, so that inbound
/// values are in the order of their first use.
void connect_stages(Plan& plan) {
  std::map<ValueKey, std::uint32_t> holder;  // of each value: the last stage so far that has it
  std::map<std::string, v1::DType> types;    // of each layer's outputs between stages
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    auto& stage = plan.stages[s];
    std::set<std::string> fields;
    int index = 0;
    for (const auto& layer : stage.config.layers()) {
      for (const auto& read : layer.reads()) {
        if (read.layer().empty()) {
          if (!fields.insert(read.field()).second) continue;
          *stage.config.add_inbound()->mutable_value() = read;
          plan.fields[read.field()].push_back(stage.address);
          continue;
        }
        auto& has_value = holder.at(key_of(read));
        if (has_value == s) continue;
        auto& producer = plan.stages[has_value];
        auto* inbound = stage.config.add_inbound();
        *inbound->mutable_value() = read;
        *inbound->mutable_producer() = address_of(producer.address);
        inbound->set_dtype(types.at(read.layer()));
        send(producer.config, read, stage.address)->set_dtype(inbound->dtype());
        has_value = s;
      }
      const auto wire = stage.config.layer_settings(index++).wire();
      types[layer.name()] =
          wire == v1::DTYPE_UNSPECIFIED ? activation_type(stage.config.precision()) : wire;
      for (std::uint32_t slot = 0; slot < layer.outputs(); ++slot)
        holder[key_of(output_of(layer.name(), slot))] = s;
    }
  }
}

/// The output of the last layer goes to the driver when there is no loss layer to read it.
void send_outputs_to_driver(Plan& plan) {
  auto& config = plan.stages.back().config;
  send(config, output_of(config.layers().rbegin()->name(), 0), {driver_node, pipeline_actor});
}

/// float16 alone needs scaling; it starts from the loss, so the loss must be the model's.
Result<void> check_loss_scaling(const PlanRequest& request, const Locate& locate) {
  if (request.precision != v1::PRECISION_FLOAT16) {
    if (!request.loss_scaling) return {};
    return bad_input(locate("loss_scaling"),
                     name_of(request.precision) + " needs no scaling of the loss",
                     "leave loss_scaling out, or use PRECISION_FLOAT16");
  }
  if (!request.train || request.loss) return {};
  return bad_input(locate("precision"),
                   "PRECISION_FLOAT16 scales the loss, which the caller computes here",
                   "use PRECISION_BFLOAT16");
}

std::optional<v1::LossScaling> loss_scaling_of(const PlanRequest& request) {
  if (request.precision != v1::PRECISION_FLOAT16 || !request.train) return std::nullopt;
  return request.loss_scaling.value_or(v1::LossScaling());
}

std::string layer_range(const v1::StageConfig& config) {
  const auto& first = config.layers(0).name();
  const auto& last = config.layers(config.layers_size() - 1).name();
  return first == last ? first : first + " .. " + last;
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

std::string stage_actor_name(std::uint32_t stage) { return "stage." + std::to_string(stage); }

Result<Plan> make_plan(const PlanRequest& request) {
  const Locate locate =
      request.locate ? request.locate : [](const std::string& path) { return path; };
  if (request.stages.empty()) return bad_input(locate("stages"), "a job needs at least one stage");
  TROUPE_ASSIGN(const std::vector<v1::Layer> layers, resolve_layers(request, locate));
  TROUPE_TRY(check_outputs(request, layers, locate));
  TROUPE_TRY(check_stages(request, locate));
  TROUPE_TRY(check_loss_scaling(request, locate));
  TROUPE_TRY(check_layer_libraries(request.layer_libraries, locate));
  TROUPE_ASSIGN(const auto settings,
                layer_settings(layers, request.rules, request.precision, locate));
  TROUPE_ASSIGN(std::vector<std::size_t> cuts, cut_layers(layers, request.stages, locate));
  cuts.push_back(layers.size());

  Plan plan;
  plan.loss_scaling = loss_scaling_of(request);
  std::vector<std::string> owned;
  for (std::uint32_t s = 0; s < request.stages.size(); ++s) {
    PlannedStage stage;
    stage.address = {request.stages[s].node(), stage_actor_name(s)};
    stage.config = base_config(request, s);
    stage.config.set_first_parameter(static_cast<std::uint32_t>(plan.parameters.size()));
    for (auto i = cuts[s]; i < cuts[s + 1]; ++i) {
      *stage.config.add_layers() = layers[i];
      *stage.config.add_layer_settings() = settings[i];
      if (request.stages[s].recompute() && !is_loss_kind(layers[i].kind()))
        stage.config.mutable_layer_settings()->rbegin()->set_recompute(true);
      for (const auto& parameter : layers[i].parameters()) {
        plan.parameters.push_back(parameter.name());
        if (parameter.tied_to().empty()) owned.push_back(parameter.name());
      }
    }
    if (plan.loss_scaling) stage.config.set_loss_scale(LossScaler(*plan.loss_scaling).scale());
    TROUPE_TRY(measure_stage(stage));
    plan.stages.push_back(std::move(stage));
  }
  if (request.train) TROUPE_TRY(check_optimizer(request.optimizer, owned, locate));
  TROUPE_TRY(connect_tied(plan.stages, locate));
  connect_stages(plan);
  if (request.loss) {
    plan.loss_stage = static_cast<std::uint32_t>(plan.stages.size() - 1);
    *plan.stages.back().config.mutable_loss() = *request.loss;
  } else {
    send_outputs_to_driver(plan);
  }
  return plan;
}

Result<void> check_fields(const Plan& plan, const std::vector<std::string>& available,
                          const Locate& locate) {
  std::size_t index = 0;
  for (const auto& stage : plan.stages)
    for (const auto& layer : stage.config.layers()) {
      const auto where = locate("model.layers.layers[" + std::to_string(index++) + "]");
      for (const auto& read : layer.reads()) {
        if (!read.layer().empty()) continue;
        if (std::find(available.begin(), available.end(), read.field()) != available.end())
          continue;
        std::string known;
        for (const auto& name : available) known += (known.empty() ? "\"" : ", \"") + name + "\"";
        return bad_input(where,
                         "layer \"" + layer.name() + "\" reads " + describe(read) +
                             ", which the data does not have",
                         "it has " + known);
      }
    }
  return {};
}

std::string render_plan(const Plan& plan, std::uint32_t micro_batches) {
  std::vector<std::vector<std::string>> rows{{"stage", "node", "device", "layers", "parameters",
                                              "weights MB", "training MB", "live micro-batches"}};
  std::uint64_t parameters = 0;
  for (const auto& stage : plan.stages) {
    const auto& config = stage.config;
    const StageSchedule schedule(config.schedule(), config.stage(), config.stage_count());
    parameters += stage.parameters;
    rows.push_back(
        {std::to_string(config.stage()), stage.address.node, config.device(),
         fmt::format("{} ({})", layer_range(config), config.layers_size()),
         std::to_string(stage.parameters), fmt::format("{:.1f}", megabytes(stage.weight_bytes)),
         fmt::format("{:.1f}", megabytes(stage.training_bytes)),
         config.train() ? std::to_string(schedule.peak_live_micro_batches(micro_batches)) : "-"});
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());

  std::string text;
  constexpr std::size_t text_columns = 4;  // left-aligned; numbers are right-aligned
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < text_columns ? fmt::format("{:<{}}  ", row[i], widths[i])
                               : fmt::format("{:>{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const auto stages = static_cast<std::uint32_t>(plan.stages.size());
  text +=
      fmt::format("{} parameters in {} stages; {} micro-batches a step, ideal bubble {:.1f} %\n",
                  parameters, stages, micro_batches, 100 * ideal_bubble(stages, micro_batches));
  if (plan.stages.front().config.train())
    text +=
        "training MB: weights, their gradients and the optimizer's state; activations and copies "
        "that "
        "kernels pack come on top\n";
  return text;
}

}  // namespace troupe::mp
