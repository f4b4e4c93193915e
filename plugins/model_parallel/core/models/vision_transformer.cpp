#include "core/models/vision_transformer.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "core/models/layer_builder.hpp"
#include "core/models/linear.hpp"

namespace troupe::mp {

namespace {

constexpr std::uint32_t default_image_size = 224;
constexpr std::uint32_t default_in_channels = 3;
/// The bound of torch.nn.init.trunc_normal_.
constexpr double truncation = 2;

Error vit_error(const std::string& field, std::string what, std::string hint = {}) {
  return bad_input("model.vit." + field, std::move(what), std::move(hint));
}

struct VitVariant {
  std::uint32_t patch_size;
  std::uint32_t layers;
  std::uint32_t heads;
  std::uint32_t width;
};

Result<VitVariant> sizes_of(v1::VisionTransformer::Variant variant) {
  switch (variant) {
    case v1::VisionTransformer::VARIANT_B_16: return VitVariant{16, 12, 12, 768};
    case v1::VisionTransformer::VARIANT_B_32: return VitVariant{32, 12, 12, 768};
    case v1::VisionTransformer::VARIANT_L_16: return VitVariant{16, 24, 16, 1024};
    case v1::VisionTransformer::VARIANT_L_32: return VitVariant{32, 24, 16, 1024};
    case v1::VisionTransformer::VARIANT_H_14: return VitVariant{14, 32, 16, 1280};
    default: return vit_error("variant", "no such variant");
  }
}

/// Writes the variant's sizes into the fields that they stand for.
Result<void> resolve_variant(v1::VisionTransformer& config) {
  if (config.variant() == v1::VisionTransformer::VARIANT_UNSPECIFIED) return {};
  if (config.patch_size() != 0 || config.layers() != 0 || config.heads() != 0 ||
      config.width() != 0 || config.mlp_width() != 0)
    return vit_error("variant", "`variant` beside sizes of its own",
                     "leave out patch_size, layers, heads, width and mlp_width");
  TROUPE_ASSIGN(const VitVariant variant, sizes_of(config.variant()));
  config.set_patch_size(variant.patch_size);
  config.set_layers(variant.layers);
  config.set_heads(variant.heads);
  config.set_width(variant.width);
  return {};
}

Result<void> check_vit_sizes(const v1::VisionTransformer& config) {
  const std::pair<const char*, std::uint32_t> sizes[] = {{"patch_size", config.patch_size()},
                                                         {"layers", config.layers()},
                                                         {"heads", config.heads()},
                                                         {"width", config.width()}};
  for (const auto& [field, size] : sizes)
    if (size == 0)
      return vit_error(field, std::string(field) + " is missing", "write it, or a `variant`");
  if (config.num_classes() == 0)
    return vit_error("num_classes", "no classes", "write how many the classifier distinguishes");
  if (config.width() % config.heads() != 0)
    return vit_error("heads",
                     "a width of " + std::to_string(config.width()) + " cannot be shared by " +
                         std::to_string(config.heads()) + " heads",
                     "the width is a multiple of the number of heads");
  if (config.image_size() % config.patch_size() != 0)
    return vit_error("image_size",
                     "an image of " + std::to_string(config.image_size()) +
                         " cannot be cut into patches of " + std::to_string(config.patch_size()),
                     "the image's size is a multiple of the patch's");
  return {};
}

Result<void> check_vit_rates(const v1::VisionTransformer& config) {
  const std::pair<const char*, double> rates[] = {{"dropout", config.dropout()},
                                                  {"attention_dropout", config.attention_dropout()},
                                                  {"drop_path", config.drop_path()}};
  for (const auto& [field, rate] : rates)
    if (!(rate >= 0 && rate < 1))
      return vit_error(field, "not a probability below 1", "write a number from 0 to below 1");
  return {};
}

/// The configuration with every default written out.
Result<v1::VisionTransformer> resolve(v1::VisionTransformer config) {
  TROUPE_TRY(resolve_variant(config));
  if (config.image_size() == 0) config.set_image_size(default_image_size);
  if (config.in_channels() == 0) config.set_in_channels(default_in_channels);
  TROUPE_TRY(check_vit_sizes(config));
  TROUPE_TRY(check_vit_rates(config));
  if (config.mlp_width() == 0) config.set_mlp_width(4 * config.width());
  return config;
}

v1::Layer make_embedding(const v1::VisionTransformer& config) {
  const std::int64_t width = config.width();
  const std::int64_t patch = config.patch_size();
  const std::int64_t channels = config.in_channels();
  const std::int64_t side = config.image_size() / config.patch_size();
  v1::Layer layer = make_layer("embedding", "vit.embedding");
  set_attribute(layer, "dropout", config.dropout());
  add_parameter(layer, "class_token", {1, 1, width}, constant_init(0));
  const double fan_in = static_cast<double>(channels * patch * patch);
  add_convolution(layer, "conv_proj", width, channels, patch,
                  truncated_normal_init(std::sqrt(1 / fan_in), truncation));
  add_parameter(layer, "conv_proj.bias", {width}, constant_init(0));
  add_parameter(layer, "encoder.pos_embedding", {1, side * side + 1, width}, normal_init(0.02));
  return layer;
}

v1::Layer make_block(const v1::VisionTransformer& config, std::uint32_t index) {
  const std::int64_t width = config.width();
  const std::int64_t hidden = config.mlp_width();
  const std::string name = "encoder.layers.encoder_layer_" + std::to_string(index);
  v1::Layer layer = make_layer(name, "vit.block");
  set_attribute(layer, "heads", config.heads());
  set_attribute(layer, "dropout", config.dropout());
  set_attribute(layer, "attention_dropout", config.attention_dropout());
  if (config.layers() > 1)
    set_attribute(layer, "drop_path", config.drop_path() * index / (config.layers() - 1));
  add_layer_norm(layer, name + ".ln_1", width);
  add_parameter(layer, name + ".self_attention.in_proj_weight", {3 * width, width},
                xavier_uniform_init(width, 3 * width));
  add_parameter(layer, name + ".self_attention.in_proj_bias", {3 * width}, constant_init(0));
  add_linear_parameters(layer, name + ".self_attention.out_proj", width, width,
                        uniform_init(1 / std::sqrt(static_cast<double>(width))), constant_init(0));
  add_layer_norm(layer, name + ".ln_2", width);
  add_linear_parameters(layer, name + ".mlp.0", width, hidden, xavier_uniform_init(width, hidden),
                        normal_init(1e-6));
  add_linear_parameters(layer, name + ".mlp.3", hidden, width, xavier_uniform_init(hidden, width),
                        normal_init(1e-6));
  return layer;
}

}  // namespace

Result<std::vector<v1::Layer>> list_vision_transformer_layers(
    const v1::VisionTransformer& written) {
  TROUPE_ASSIGN(const v1::VisionTransformer config, resolve(written));
  std::vector<v1::Layer> layers = {make_embedding(config)};
  for (std::uint32_t i = 0; i < config.layers(); ++i) layers.push_back(make_block(config, i));
  layers.push_back(make_layer("encoder.ln", "layer_norm"));
  set_attribute(layers.back(), "epsilon", 1e-6);
  add_layer_norm(layers.back(), "encoder.ln", config.width());
  layers.push_back(make_layer("heads", "vit.head"));
  add_linear_parameters(layers.back(), "heads.head", config.width(), config.num_classes(),
                        constant_init(0), constant_init(0));
  return layers;
}

}  // namespace troupe::mp
