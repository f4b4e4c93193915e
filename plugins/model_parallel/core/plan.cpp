#include "core/plan.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/layer_cut.hpp"
#include "core/optimizer_config.hpp"
#include "core/schedule.hpp"

namespace troupe::mp {
namespace {

using Locate = std::function<std::string(const std::string&)>;

/// A value as a key: (layer, slot, field).
using ValueKey = std::tuple<std::string, std::uint32_t, std::string>;

ValueKey key_of(const v1::ValueRef& value) { return {value.layer(), value.slot(), value.field()}; }

std::string describe(const v1::ValueRef& value) {
  if (value.layer().empty()) return "field \"" + value.field() + "\"";
  return "output " + std::to_string(value.slot()) + " of layer \"" + value.layer() + "\"";
}

std::uint32_t output_count(const v1::Layer& layer) {
  return layer.outputs() == 0 ? 1 : layer.outputs();
}

v1::ValueRef output_of(const v1::Layer& layer, std::uint32_t slot) {
  v1::ValueRef value;
  value.set_layer(layer.name());
  value.set_slot(slot);
  return value;
}

v1::ValueRef batch_field(const std::string& name) {
  v1::ValueRef value;
  value.set_field(name);
  return value;
}

v1::Layer make_loss_layer(const v1::Loss& loss, const v1::Layer& last) {
  v1::Layer layer;
  layer.set_name(loss_layer);
  layer.set_kind(loss.kind_case() == v1::Loss::kCrossEntropy ? "loss.cross_entropy" : "loss.mse");
  *layer.add_reads() = output_of(last, 0);
  *layer.add_reads() = batch_field("targets");
  return layer;
}

/// The layers with every read written out and checked, and the loss appended.
Result<std::vector<v1::Layer>> resolve_layers(const PlanRequest& request, const Locate& locate) {
  auto layers = request.layers;
  if (layers.empty()) return bad_input(locate("model"), "the model has no layers");
  if (request.loss) layers.push_back(make_loss_layer(*request.loss, layers.back()));

  std::map<std::string, std::uint32_t> outputs;  // of the layers before
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& layer = layers[i];
    const auto where = locate("model.layers.layers[" + std::to_string(i) + "]");
    if (layer.name().empty()) return bad_input(where, "a layer without a name");
    if (outputs.count(layer.name()) != 0)
      return bad_input(where, "two layers are called \"" + layer.name() + "\"",
                       layer.name() == loss_layer ? "the name belongs to the loss" : "");
    layer.set_outputs(output_count(layer));
    if (layer.reads().empty()) {
      if (i == 0) *layer.add_reads() = batch_field("inputs");
      if (i != 0)
        for (std::uint32_t slot = 0; slot < layers[i - 1].outputs(); ++slot)
          *layer.add_reads() = output_of(layers[i - 1], slot);
    }
    for (const auto& read : layer.reads()) {
      if (read.layer().empty() == read.field().empty())
        return bad_input(where, "layer \"" + layer.name() +
                                    "\" has a read that does not name either a layer or a field");
      if (read.layer().empty()) continue;
      const auto producer = outputs.find(read.layer());
      if (producer == outputs.end())
        return bad_input(where, "layer \"" + layer.name() + "\" reads " + describe(read) +
                                    ", which is not an earlier layer");
      if (read.slot() >= producer->second)
        return bad_input(where, "layer \"" + layer.name() + "\" reads " + describe(read) +
                                    ", which has only " + std::to_string(producer->second));
    }
    outputs.emplace(layer.name(), layer.outputs());
  }
  return layers;
}

Result<void> check_nodes(const PlanRequest& request, const Locate& locate) {
  for (std::size_t s = 0; s < request.stages.size(); ++s) {
    const auto& node = request.stages[s].node();
    if (std::find(request.nodes.begin(), request.nodes.end(), node) != request.nodes.end())
      continue;
    std::string known;
    for (const auto& name : request.nodes) known += (known.empty() ? "\"" : ", \"") + name + "\"";
    return bad_input(locate("stages[" + std::to_string(s) + "].node"),
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

/// Fills in the sizes of a stage whose layers are set.
Result<void> measure_stage(PlannedStage& stage) {
  const auto& config = stage.config;
  const std::uint64_t element = config.precision() == v1::PRECISION_FLOAT64 ? 8 : 4;
  std::uint64_t buffer_bytes = 0;
  for (const auto& layer : config.layers()) {
    for (const auto& parameter : layer.parameters()) {
      TROUPE_ASSIGN(const std::uint64_t elements, elements_of(parameter));
      stage.parameters += elements;
    }
    for (const auto& buffer : layer.buffers()) {
      TROUPE_ASSIGN(const std::uint64_t elements, elements_of(buffer));
      buffer_bytes += elements * (buffer.integer() ? sizeof(std::int64_t) : element);
    }
  }
  stage.weight_bytes = stage.parameters * element + buffer_bytes;
  stage.training_bytes = stage.weight_bytes;
  if (config.train()) {
    const std::size_t kept = config.frozen() ? 0 : state_per_element(config.optimizer_config());
    stage.training_bytes += stage.parameters * element * (1 + kept);
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
  config.set_precision(request.precision == v1::PRECISION_UNSPECIFIED ? v1::PRECISION_FLOAT32
                                                                      : request.precision);
  config.set_seed(request.seed);
  if (request.optimizer) *config.mutable_optimizer_config() = *request.optimizer;
  config.set_device(stage.device().empty() ? "cpu" : stage.device());
  config.set_threads(stage.threads());
  config.set_frozen(stage.frozen());
  config.set_train(request.train);
  config.set_slow_down_seconds(stage.slow_down_seconds());
  return config;
}

/// Adds a reader of `value` to its producer, once for each reading stage.
void add_reader(v1::StageConfig& producer, const v1::ValueRef& value, const ActorAddress& reader) {
  auto& outbound = *producer.mutable_outbound();
  auto place = std::find_if(outbound.begin(), outbound.end(), [&](const auto& candidate) {
    return key_of(candidate.value()) == key_of(value);
  });
  if (place == outbound.end()) {
    *producer.add_outbound()->mutable_value() = value;
    place = outbound.end() - 1;
  }
  auto* address = place->add_readers();
  address->set_node(reader.node);
  address->set_actor(reader.actor);
}

/// Works out what crosses the borders between stages, visiting layers in order, so that inbound
/// values are in the order of their first use and readers in the order of the stages.
void connect_stages(Plan& plan) {
  std::map<std::string, std::uint32_t> stage_of;  // by layer
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    auto& stage = plan.stages[s];
    std::set<ValueKey> received;
    for (const auto& layer : stage.config.layers()) {
      for (const auto& read : layer.reads()) {
        const bool is_field = read.layer().empty();
        if (!is_field && stage_of.count(read.layer()) != 0 && stage_of[read.layer()] == s) continue;
        if (!received.insert(key_of(read)).second) continue;
        auto* inbound = stage.config.add_inbound();
        *inbound->mutable_value() = read;
        if (is_field) {
          plan.fields[read.field()].push_back(stage.address);
          continue;
        }
        auto& producer = plan.stages[stage_of[read.layer()]];
        inbound->mutable_producer()->set_node(producer.address.node);
        inbound->mutable_producer()->set_actor(producer.address.actor);
        add_reader(producer.config, read, stage.address);
      }
      stage_of[layer.name()] = s;
    }
  }
}

/// Outputs of the last layer go to the driver when there is no loss layer to read them.
void send_outputs_to_driver(Plan& plan) {
  auto& config = plan.stages.back().config;
  const auto last = *config.layers().rbegin();
  for (std::uint32_t slot = 0; slot < last.outputs(); ++slot)
    add_reader(config, output_of(last, slot), {driver_node, pipeline_actor});
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
  TROUPE_TRY(check_nodes(request, locate));
  TROUPE_ASSIGN(std::vector<std::size_t> cuts, cut_layers(layers, request.stages, locate));
  cuts.push_back(layers.size());

  Plan plan;
  for (std::uint32_t s = 0; s < request.stages.size(); ++s) {
    PlannedStage stage;
    stage.address = {request.stages[s].node(), stage_actor_name(s)};
    stage.config = base_config(request, s);
    stage.config.set_first_parameter(static_cast<std::uint32_t>(plan.parameters.size()));
    for (auto i = cuts[s]; i < cuts[s + 1]; ++i) {
      *stage.config.add_layers() = layers[i];
      for (const auto& parameter : layers[i].parameters())
        plan.parameters.push_back(parameter.name());
    }
    TROUPE_TRY(measure_stage(stage));
    plan.stages.push_back(std::move(stage));
  }
  if (request.train && request.optimizer)
    TROUPE_TRY(check_optimizer(*request.optimizer, plan.parameters, [&](const std::string& path) {
      return locate("optimizer." + path);
    }));
  connect_stages(plan);
  if (request.loss) {
    plan.loss_stage = static_cast<std::uint32_t>(plan.stages.size() - 1);
    *plan.stages.back().config.mutable_loss() = *request.loss;
  } else {
    send_outputs_to_driver(plan);
  }
  return plan;
}

std::string render_plan(const Plan& plan, std::uint32_t micro_batches) {
  std::vector<std::vector<std::string>> rows{{"stage", "node", "device", "layers", "parameters",
                                              "weights MB", "in training MB",
                                              "live micro-batches"}};
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
  return text;
}

}  // namespace troupe::mp
