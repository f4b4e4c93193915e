#include "core/models/vgg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "core/models/layer_builder.hpp"
#include "core/models/linear.hpp"

namespace troupe::mp {

namespace {

/// Convolutions before each max pooling; the channels double from 64 to 512.
using VggGroups = std::array<int, 5>;
constexpr std::array<std::int64_t, 5> vgg_channels = {64, 128, 256, 512, 512};
constexpr std::int64_t default_classifier_width = 4096;
constexpr double vgg_dropout = 0.5;
/// Height and width of what the classifier sees, whatever the image.
constexpr std::int64_t pooled_side = 7;
constexpr std::int64_t most_vgg_channels = 1 << 20;

Error vgg_error(const std::string& field, std::string what, std::string hint = {}) {
  return bad_input("model.vgg." + field, std::move(what), std::move(hint));
}

Result<VggGroups> vgg_groups(std::uint32_t depth) {
  switch (depth) {
    case 11: return VggGroups{1, 1, 2, 2, 2};
    case 13: return VggGroups{2, 2, 2, 2, 2};
    case 16: return VggGroups{2, 2, 3, 3, 3};
    case 19: return VggGroups{2, 2, 4, 4, 4};
    default:
      return vgg_error("depth", "no VGG network of depth " + std::to_string(depth),
                       "11, 13, 16 or 19");
  }
}

Result<void> check_vgg(const v1::Vgg& config) {
  if (config.num_classes() == 0)
    return vgg_error("num_classes", "no classes", "write how many the classifier distinguishes");
  if (config.in_channels() > most_vgg_channels)
    return vgg_error("in_channels", "too many channels");
  if (config.classifier_width() > most_vgg_channels)
    return vgg_error("classifier_width", "too many features");
  const double width = config.width_multiplier();
  if (!std::isfinite(width) || width < 0)
    return vgg_error("width_multiplier", "not a positive number");
  if (width * static_cast<double>(vgg_channels.back()) > static_cast<double>(most_vgg_channels))
    return vgg_error("width_multiplier", "more than " + std::to_string(most_vgg_channels) +
                                             " channels in the last group");
  if (!(config.dropout() >= 0 && config.dropout() < 1))
    return vgg_error("dropout", "not a probability below 1");
  return {};
}

std::int64_t scaled_channels(std::int64_t channels, double multiplier) {
  if (multiplier == 0) return channels;
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(channels) * multiplier));
}

/// A convolution with what follows it; `index` is its number among torchvision's modules.
v1::Layer make_vgg_convolution(int index, std::int64_t inputs, std::int64_t outputs, bool norm,
                               bool pool) {
  const std::string name = "features." + std::to_string(index);
  v1::Layer layer = make_layer(name, "vgg.convolution");
  set_attribute(layer, "max_pool", pool ? 1 : 0);
  add_convolution(layer, name, outputs, inputs, 3, kaiming_normal_init(outputs, 3));
  add_parameter(layer, name + ".bias", {outputs}, constant_init(0));
  if (norm) add_batch_norm(layer, "features." + std::to_string(index + 1), outputs);
  return layer;
}

void append_vgg_classifier(const v1::Vgg& config, std::int64_t channels,
                           std::vector<v1::Layer>& layers) {
  const std::int64_t width =
      config.classifier_width() == 0 ? default_classifier_width : config.classifier_width();
  const double dropout = config.has_dropout() ? config.dropout() : vgg_dropout;
  const auto add_linear = [&](int index, std::int64_t inputs, std::int64_t outputs) {
    const std::string name = "classifier." + std::to_string(index);
    layers.push_back(make_layer(name, "linear"));
    add_linear_parameters(layers.back(), name, inputs, outputs, normal_init(0.01),
                          constant_init(0));
  };
  const auto add_hidden = [&](int index, std::int64_t inputs) {
    add_linear(index, inputs, width);
    layers.push_back(make_layer("classifier." + std::to_string(index + 1), "relu"));
    layers.push_back(make_layer("classifier." + std::to_string(index + 2), "dropout"));
    set_attribute(layers.back(), "rate", dropout);
  };
  layers.push_back(make_layer("avgpool", "adaptive_avg_pool2d"));
  set_attribute(layers.back(), "height", pooled_side);
  set_attribute(layers.back(), "width", pooled_side);
  layers.push_back(make_layer("flatten", "flatten"));
  add_hidden(0, channels * pooled_side * pooled_side);
  add_hidden(3, width);
  add_linear(6, width, config.num_classes());
}

}  // namespace

Result<std::vector<v1::Layer>> list_vgg_layers(const v1::Vgg& config) {
  TROUPE_ASSIGN(const VggGroups groups, vgg_groups(config.depth()));
  TROUPE_TRY(check_vgg(config));
  // A convolution, perhaps batch norm, and ReLU.
  const int modules = config.batch_norm() ? 3 : 2;
  std::vector<v1::Layer> layers;
  std::int64_t channels = config.in_channels() == 0 ? 3 : config.in_channels();
  int index = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const std::int64_t outputs = scaled_channels(vgg_channels[group], config.width_multiplier());
    for (int i = 0; i < groups[group]; ++i) {
      const bool last = i + 1 == groups[group];
      layers.push_back(make_vgg_convolution(index, channels, outputs, config.batch_norm(), last));
      channels = outputs;
      index += modules + (last ? 1 : 0);
    }
  }
  append_vgg_classifier(config, channels, layers);
  return layers;
}

}  // namespace troupe::mp
