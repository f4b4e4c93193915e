#include "core/models/resnet.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/models/linear.hpp"

namespace troupe::mp {

namespace {

/// Channels of the stem and of the first group's blocks, before the width multiplier.
constexpr std::int64_t base_channels = 64;
constexpr std::int64_t bottleneck_expansion = 4;
/// Every group halves the image: more groups than this have no pixels left to work on.
constexpr int most_groups = 16;
/// Channels of a layer beyond this are a slip of the configuration.
constexpr std::int64_t most_channels = 1 << 20;

Error field_error(const std::string& field, std::string what, std::string hint = {}) {
  return bad_input("model.resnet." + field, std::move(what), std::move(hint));
}

/// The configuration with every default written out.
struct Plan {
  std::vector<std::uint32_t> blocks;
  bool bottleneck = false;
  bool small_stem = false;
  std::int64_t in_channels = 3;
  std::int64_t classes = 0;
  double width = 1.0;

  std::int64_t scaled(std::int64_t channels) const {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(channels) * width));
  }
  std::int64_t expansion() const { return bottleneck ? bottleneck_expansion : 1; }
  /// Channels inside the blocks of group 0, 1, ...
  std::int64_t planes(std::size_t group) const { return scaled(base_channels << group); }
};

Result<void> choose_blocks(const v1::ResNet& config, Plan& plan) {
  if (config.depth() != 0) {
    if (config.blocks_size() != 0)
      return field_error("blocks",
                         "`blocks` beside `depth: " + std::to_string(config.depth()) + "`",
                         "write one of the two");
    if (config.block() != v1::ResNet::BLOCK_UNSPECIFIED)
      return field_error("block", "`block` beside `depth: " + std::to_string(config.depth()) + "`",
                         "the depth decides the kind of block");
  }
  switch (config.depth()) {
    case 18: plan.blocks = {2, 2, 2, 2}; return {};
    case 34: plan.blocks = {3, 4, 6, 3}; return {};
    case 50: plan.blocks = {3, 4, 6, 3}; break;
    case 101: plan.blocks = {3, 4, 23, 3}; break;
    case 152: plan.blocks = {3, 8, 36, 3}; break;
    case 0:
      if (config.blocks_size() == 0)
        return field_error("depth", "no depth",
                           "write 18, 34, 50, 101 or 152, or `blocks` and `block`");
      if (config.blocks_size() > most_groups)
        return field_error("blocks", std::to_string(config.blocks_size()) + " groups",
                           "at most " + std::to_string(most_groups));
      if (config.block() == v1::ResNet::BLOCK_UNSPECIFIED)
        return field_error("block", "the kind of block is missing",
                           "write BLOCK_BASIC or BLOCK_BOTTLENECK");
      plan.blocks.assign(config.blocks().begin(), config.blocks().end());
      for (std::size_t i = 0; i < plan.blocks.size(); ++i)
        if (plan.blocks[i] < 1 || plan.blocks[i] > 1000)
          return field_error("blocks[" + std::to_string(i) + "]",
                             std::to_string(plan.blocks[i]) + " blocks in a group",
                             "from 1 to 1000");
      plan.bottleneck = config.block() == v1::ResNet::BLOCK_BOTTLENECK;
      return {};
    default:
      return field_error("depth", "no residual network of depth " + std::to_string(config.depth()),
                         "18, 34, 50, 101 or 152, or `depth: 0` with `blocks`");
  }
  plan.bottleneck = true;
  return {};
}

Result<Plan> make_plan(const v1::ResNet& config) {
  Plan plan;
  TROUPE_TRY(choose_blocks(config, plan));
  plan.small_stem = config.stem() == v1::ResNet::STEM_SMALL;
  if (config.in_channels() != 0) plan.in_channels = config.in_channels();
  if (plan.in_channels > most_channels) return field_error("in_channels", "too many channels");
  if (config.num_classes() == 0)
    return field_error("num_classes", "no classes", "write how many the classifier distinguishes");
  plan.classes = config.num_classes();
  if (config.width_multiplier() != 0) plan.width = config.width_multiplier();
  if (!(plan.width > 0) || !std::isfinite(plan.width))
    return field_error("width_multiplier", "not a positive number");
  const double widest =
      static_cast<double>((base_channels << (plan.blocks.size() - 1)) * plan.expansion()) *
      plan.width;
  if (widest > static_cast<double>(most_channels))
    return field_error("width_multiplier", "more than " + std::to_string(most_channels) +
                                               " channels in the last group");
  return plan;
}

void add_parameter(v1::Layer& layer, const std::string& name, std::int64_t size, double constant) {
  auto* parameter = layer.add_parameters();
  parameter->set_name(name);
  parameter->add_shape(size);
  parameter->mutable_init()->set_constant(constant);
}

void add_buffer(v1::Layer& layer, const std::string& name, std::int64_t size, double constant) {
  auto* buffer = layer.add_buffers();
  buffer->set_name(name);
  buffer->add_shape(size);
  buffer->mutable_init()->set_constant(constant);
}

/// Kaiming normal, fan-out, gain sqrt(2) (He et al., "Delving Deep into Rectifiers", 2015).
void add_convolution(v1::Layer& layer, const std::string& name, std::int64_t outputs,
                     std::int64_t inputs, std::int64_t kernel) {
  auto* weight = layer.add_parameters();
  weight->set_name(name + ".weight");
  for (const std::int64_t size : {outputs, inputs, kernel, kernel}) weight->add_shape(size);
  const double fan_out = static_cast<double>(outputs * kernel * kernel);
  weight->mutable_init()->set_normal_std(std::sqrt(2.0 / fan_out));
}

void add_batch_norm(v1::Layer& layer, const std::string& name, std::int64_t channels) {
  add_parameter(layer, name + ".weight", channels, 1.0);
  add_parameter(layer, name + ".bias", channels, 0.0);
  add_buffer(layer, name + ".running_mean", channels, 0.0);
  add_buffer(layer, name + ".running_var", channels, 1.0);
  auto* counter = layer.add_buffers();
  counter->set_name(name + ".num_batches_tracked");
  counter->set_integer(true);
  counter->mutable_init()->set_constant(0.0);
}

v1::Layer make_stem(const Plan& plan) {
  v1::Layer layer;
  layer.set_name("stem");
  layer.set_kind("resnet.stem");
  layer.set_outputs(1);
  (*layer.mutable_attributes())["small"] = plan.small_stem ? 1.0 : 0.0;
  const std::int64_t channels = plan.scaled(base_channels);
  add_convolution(layer, "conv1", channels, plan.in_channels, plan.small_stem ? 3 : 7);
  add_batch_norm(layer, "bn1", channels);
  return layer;
}

v1::Layer make_block(const Plan& plan, const std::string& name, std::int64_t inputs,
                     std::int64_t planes, std::int64_t stride) {
  v1::Layer layer;
  layer.set_name(name);
  layer.set_kind(plan.bottleneck ? "resnet.bottleneck" : "resnet.basic_block");
  layer.set_outputs(1);
  (*layer.mutable_attributes())["stride"] = static_cast<double>(stride);
  const std::int64_t outputs = planes * plan.expansion();
  if (plan.bottleneck) {
    add_convolution(layer, name + ".conv1", planes, inputs, 1);
    add_batch_norm(layer, name + ".bn1", planes);
    add_convolution(layer, name + ".conv2", planes, planes, 3);
    add_batch_norm(layer, name + ".bn2", planes);
    add_convolution(layer, name + ".conv3", outputs, planes, 1);
    add_batch_norm(layer, name + ".bn3", outputs);
  } else {
    add_convolution(layer, name + ".conv1", planes, inputs, 3);
    add_batch_norm(layer, name + ".bn1", planes);
    add_convolution(layer, name + ".conv2", planes, planes, 3);
    add_batch_norm(layer, name + ".bn2", planes);
  }
  if (stride != 1 || inputs != outputs) {
    add_convolution(layer, name + ".downsample.0", outputs, inputs, 1);
    add_batch_norm(layer, name + ".downsample.1", outputs);
  }
  return layer;
}

v1::Layer make_head(const Plan& plan, std::int64_t inputs) {
  v1::Layer layer;
  layer.set_name("fc");
  layer.set_kind("resnet.head");
  layer.set_outputs(1);
  add_linear_parameters(layer, "fc", inputs, plan.classes, true);
  return layer;
}

}  // namespace

Result<std::vector<v1::Layer>> list_resnet_layers(const v1::ResNet& config) {
  TROUPE_ASSIGN(const Plan plan, make_plan(config));
  std::vector<v1::Layer> layers;
  layers.push_back(make_stem(plan));
  std::int64_t channels = plan.scaled(base_channels);
  for (std::size_t group = 0; group < plan.blocks.size(); ++group) {
    const std::string prefix = "layer" + std::to_string(group + 1) + ".";
    const std::int64_t planes = plan.planes(group);
    for (std::uint32_t i = 0; i < plan.blocks[group]; ++i) {
      // The first block of every group but the first halves the image.
      const std::int64_t stride = group != 0 && i == 0 ? 2 : 1;
      layers.push_back(make_block(plan, prefix + std::to_string(i), channels, planes, stride));
      channels = planes * plan.expansion();
    }
  }
  layers.push_back(make_head(plan, channels));
  return layers;
}

}  // namespace troupe::mp
