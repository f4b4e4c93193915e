#include "core/models/resnet.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/models/layer_builder.hpp"
#include "core/models/linear.hpp"

namespace troupe::mp {

namespace {

/// Channels of the stem and of the first group's blocks, before the width multiplier.
constexpr std::int64_t base_channels = 64;
constexpr std::int64_t bottleneck_expansion = 4;
/// Every group halves the image: more groups than this have no pixels left to work on.
constexpr int most_groups = 16;
/// Channels of a layer beyond this are a slip of the configuration.
constexpr std::int64_t most_resnet_channels = 1 << 20;

Error resnet_error(const std::string& field, std::string what, std::string hint = {}) {
  return bad_input("model.resnet." + field, std::move(what), std::move(hint));
}

/// The configuration with every default written out.
struct ResNetPlan {
  std::vector<std::uint32_t> blocks;
  bool bottleneck = false;
  std::int64_t groups = 1;
  std::int64_t width_per_group = base_channels;
  bool small_stem = false;
  std::int64_t in_channels = 3;
  std::int64_t classes = 0;
  double width = 1.0;

  std::int64_t scaled(std::int64_t channels) const {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(channels) * width));
  }
  std::int64_t expansion() const { return bottleneck ? bottleneck_expansion : 1; }
  /// Channels of the 3x3 convolution in a bottleneck, rounded down as torchvision does.
  std::int64_t bottleneck_width(std::int64_t planes) const {
    return static_cast<std::int64_t>(static_cast<double>(planes) *
                                     (static_cast<double>(width_per_group) / base_channels)) *
           groups;
  }
  /// Channels of the blocks of group 0, 1, ...
  std::int64_t planes(std::size_t group) const { return scaled(base_channels << group); }
};

struct ResNetVariant {
  std::uint32_t depth;
  std::uint32_t groups;
  std::uint32_t width_per_group;
};

Result<ResNetVariant> sizes_of(v1::ResNet::Variant variant) {
  switch (variant) {
    case v1::ResNet::VARIANT_RESNEXT50_32X4D: return ResNetVariant{50, 32, 4};
    case v1::ResNet::VARIANT_RESNEXT101_32X8D: return ResNetVariant{101, 32, 8};
    case v1::ResNet::VARIANT_RESNEXT101_64X4D: return ResNetVariant{101, 64, 4};
    case v1::ResNet::VARIANT_WIDE_RESNET50_2: return ResNetVariant{50, 1, 128};
    case v1::ResNet::VARIANT_WIDE_RESNET101_2: return ResNetVariant{101, 1, 128};
    default: return resnet_error("variant", "no such variant");
  }
}

/// The configuration with the variant's sizes written into the fields that they stand for.
Result<v1::ResNet> resolve_variant(v1::ResNet config) {
  if (config.variant() == v1::ResNet::VARIANT_UNSPECIFIED) return config;
  TROUPE_ASSIGN(const ResNetVariant variant, sizes_of(config.variant()));
  if (config.depth() != 0 || config.groups() != 0 || config.width_per_group() != 0 ||
      config.blocks_size() != 0 || config.block() != v1::ResNet::BLOCK_UNSPECIFIED)
    return resnet_error("variant", "`variant` beside sizes of its own",
                        "leave out depth, groups, width_per_group, blocks and block");
  config.set_depth(variant.depth);
  config.set_groups(variant.groups);
  config.set_width_per_group(variant.width_per_group);
  return config;
}

/// Groups and their width, once the kind of block is known.
Result<void> choose_groups(const v1::ResNet& config, ResNetPlan& plan) {
  if (config.groups() != 0) plan.groups = config.groups();
  if (config.width_per_group() != 0) plan.width_per_group = config.width_per_group();
  if (!plan.bottleneck && (plan.groups != 1 || plan.width_per_group != base_channels))
    return resnet_error(plan.groups != 1 ? "groups" : "width_per_group",
                        "basic blocks have no groups and one width",
                        "choose a depth of 50 or more, or BLOCK_BOTTLENECK");
  return {};
}

Result<void> choose_blocks(const v1::ResNet& config, ResNetPlan& plan) {
  if (config.depth() != 0) {
    if (config.blocks_size() != 0)
      return resnet_error("blocks",
                          "`blocks` beside `depth: " + std::to_string(config.depth()) + "`",
                          "write one of the two");
    if (config.block() != v1::ResNet::BLOCK_UNSPECIFIED)
      return resnet_error("block", "`block` beside `depth: " + std::to_string(config.depth()) + "`",
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
        return resnet_error("depth", "no depth",
                            "write 18, 34, 50, 101 or 152, or `blocks` and `block`, or `variant`");
      if (config.blocks_size() > most_groups)
        return resnet_error("blocks", std::to_string(config.blocks_size()) + " groups",
                            "at most " + std::to_string(most_groups));
      if (config.block() == v1::ResNet::BLOCK_UNSPECIFIED)
        return resnet_error("block", "the kind of block is missing",
                            "write BLOCK_BASIC or BLOCK_BOTTLENECK");
      plan.blocks.assign(config.blocks().begin(), config.blocks().end());
      for (std::size_t i = 0; i < plan.blocks.size(); ++i)
        if (plan.blocks[i] < 1 || plan.blocks[i] > 1000)
          return resnet_error("blocks[" + std::to_string(i) + "]",
                              std::to_string(plan.blocks[i]) + " blocks in a group",
                              "from 1 to 1000");
      plan.bottleneck = config.block() == v1::ResNet::BLOCK_BOTTLENECK;
      return {};
    default:
      return resnet_error("depth", "no residual network of depth " + std::to_string(config.depth()),
                          "18, 34, 50, 101 or 152, or `depth: 0` with `blocks`");
  }
  plan.bottleneck = true;
  return {};
}

Result<ResNetPlan> make_plan(const v1::ResNet& config) {
  ResNetPlan plan;
  TROUPE_TRY(choose_blocks(config, plan));
  TROUPE_TRY(choose_groups(config, plan));
  plan.small_stem = config.stem() == v1::ResNet::STEM_SMALL;
  if (config.in_channels() != 0) plan.in_channels = config.in_channels();
  if (plan.in_channels > most_resnet_channels)
    return resnet_error("in_channels", "too many channels");
  if (config.num_classes() == 0)
    return resnet_error("num_classes", "no classes", "write how many the classifier distinguishes");
  plan.classes = config.num_classes();
  if (config.width_multiplier() != 0) plan.width = config.width_multiplier();
  if (!(plan.width > 0) || !std::isfinite(plan.width))
    return resnet_error("width_multiplier", "not a positive number");
  const double widest =
      static_cast<double>((base_channels << (plan.blocks.size() - 1)) * plan.expansion()) *
      plan.width;
  if (widest > static_cast<double>(most_resnet_channels))
    return resnet_error("width_multiplier", "more than " + std::to_string(most_resnet_channels) +
                                                " channels in the last group");
  if (!plan.bottleneck) return plan;
  if (plan.bottleneck_width(plan.planes(0)) < 1)
    return resnet_error("width_per_group", "no channels in the first group");
  if (plan.bottleneck_width(plan.planes(plan.blocks.size() - 1)) > most_resnet_channels)
    return resnet_error("width_per_group", "more than " + std::to_string(most_resnet_channels) +
                                               " channels in the last group");
  return plan;
}

/// What torchvision begins its convolutions with.
void add_kaiming_convolution(v1::Layer& layer, const std::string& name, std::int64_t outputs,
                             std::int64_t inputs, std::int64_t kernel) {
  add_convolution(layer, name, outputs, inputs, kernel, kaiming_normal_init(outputs, kernel));
}

v1::Layer make_stem(const ResNetPlan& plan) {
  v1::Layer layer = make_layer("stem", "resnet.stem");
  set_attribute(layer, "small", plan.small_stem ? 1.0 : 0.0);
  const std::int64_t channels = plan.scaled(base_channels);
  add_kaiming_convolution(layer, "conv1", channels, plan.in_channels, plan.small_stem ? 3 : 7);
  add_batch_norm(layer, "bn1", channels);
  return layer;
}

v1::Layer make_block(const ResNetPlan& plan, const std::string& name, std::int64_t inputs,
                     std::int64_t planes, std::int64_t stride) {
  v1::Layer layer = make_layer(name, plan.bottleneck ? "resnet.bottleneck" : "resnet.basic_block");
  set_attribute(layer, "stride", static_cast<double>(stride));
  const std::int64_t outputs = planes * plan.expansion();
  if (plan.bottleneck) {
    const std::int64_t width = plan.bottleneck_width(planes);
    if (plan.groups != 1) set_attribute(layer, "groups", static_cast<double>(plan.groups));
    add_kaiming_convolution(layer, name + ".conv1", width, inputs, 1);
    add_batch_norm(layer, name + ".bn1", width);
    add_kaiming_convolution(layer, name + ".conv2", width, width / plan.groups, 3);
    add_batch_norm(layer, name + ".bn2", width);
    add_kaiming_convolution(layer, name + ".conv3", outputs, width, 1);
    add_batch_norm(layer, name + ".bn3", outputs);
  } else {
    add_kaiming_convolution(layer, name + ".conv1", planes, inputs, 3);
    add_batch_norm(layer, name + ".bn1", planes);
    add_kaiming_convolution(layer, name + ".conv2", planes, planes, 3);
    add_batch_norm(layer, name + ".bn2", planes);
  }
  if (stride != 1 || inputs != outputs) {
    add_kaiming_convolution(layer, name + ".downsample.0", outputs, inputs, 1);
    add_batch_norm(layer, name + ".downsample.1", outputs);
  }
  return layer;
}

v1::Layer make_head(const ResNetPlan& plan, std::int64_t inputs) {
  v1::Layer layer = make_layer("fc", "resnet.head");
  add_linear_parameters(layer, "fc", inputs, plan.classes, true);
  return layer;
}

}  // namespace

Result<std::vector<v1::Layer>> list_resnet_layers(const v1::ResNet& config) {
  TROUPE_ASSIGN(const v1::ResNet resolved, resolve_variant(config));
  TROUPE_ASSIGN(const ResNetPlan plan, make_plan(resolved));
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
