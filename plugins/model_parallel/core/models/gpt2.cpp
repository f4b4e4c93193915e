#include "core/models/gpt2.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "core/models/layer_builder.hpp"

namespace troupe::mp {

namespace {

constexpr std::uint32_t default_vocab_size = 50257;
constexpr std::uint32_t default_context = 1024;
constexpr double default_gpt2_dropout = 0.1;
constexpr double std_of_weights = 0.02;
constexpr const char* token_embedding = "transformer.wte";

Error gpt2_error(const std::string& field, std::string what, std::string hint = {}) {
  return bad_input("model.gpt2." + field, std::move(what), std::move(hint));
}

struct Gpt2Sizes {
  std::uint32_t layers;
  std::uint32_t heads;
  std::uint32_t width;
};

Result<Gpt2Sizes> sizes_of(v1::Gpt2::Size size) {
  switch (size) {
    case v1::Gpt2::SIZE_SMALL: return Gpt2Sizes{12, 12, 768};
    case v1::Gpt2::SIZE_MEDIUM: return Gpt2Sizes{24, 16, 1024};
    case v1::Gpt2::SIZE_LARGE: return Gpt2Sizes{36, 20, 1280};
    case v1::Gpt2::SIZE_XL: return Gpt2Sizes{48, 25, 1600};
    default: return gpt2_error("size", "no such size");
  }
}

/// The configuration with every default written out.
Result<v1::Gpt2> resolve(v1::Gpt2 config) {
  if (config.size() != v1::Gpt2::SIZE_UNSPECIFIED) {
    if (config.layers() != 0 || config.heads() != 0 || config.width() != 0)
      return gpt2_error("size", "`size` beside sizes of its own",
                        "leave out layers, heads and width");
    TROUPE_ASSIGN(const Gpt2Sizes sizes, sizes_of(config.size()));
    config.set_layers(sizes.layers);
    config.set_heads(sizes.heads);
    config.set_width(sizes.width);
  }
  const std::pair<const char*, std::uint32_t> sizes[] = {
      {"layers", config.layers()}, {"heads", config.heads()}, {"width", config.width()}};
  for (const auto& [field, size] : sizes)
    if (size == 0)
      return gpt2_error(field, std::string(field) + " is missing", "write it, or a `size`");
  if (config.width() % config.heads() != 0)
    return gpt2_error("heads",
                      "a width of " + std::to_string(config.width()) + " cannot be shared by " +
                          std::to_string(config.heads()) + " heads",
                      "the width is a multiple of the number of heads");
  if (!config.has_dropout()) config.set_dropout(default_gpt2_dropout);
  if (!(config.dropout() >= 0 && config.dropout() < 1))
    return gpt2_error("dropout", "not a probability below 1", "write a number from 0 to below 1");
  if (config.vocab_size() == 0) config.set_vocab_size(default_vocab_size);
  if (config.context() == 0) config.set_context(default_context);
  return config;
}

v1::Layer make_embedding(const std::string& name, const std::string& kind, std::int64_t rows,
                         std::int64_t width) {
  v1::Layer layer = make_layer(name, kind);
  add_parameter(layer, name + ".weight", {rows, width}, normal_init(std_of_weights));
  return layer;
}

/// Hugging Face's Conv1D: a linear map whose weight is [inputs, outputs].
void add_map(v1::Layer& layer, const std::string& prefix, std::int64_t inputs, std::int64_t outputs,
             double std) {
  add_parameter(layer, prefix + ".weight", {inputs, outputs}, normal_init(std));
  add_parameter(layer, prefix + ".bias", {outputs}, constant_init(0));
}

v1::Layer make_block(const v1::Gpt2& config, std::uint32_t index) {
  const std::int64_t width = config.width();
  const std::string name = "transformer.h." + std::to_string(index);
  // Two maps of each block are added to the stream: the more blocks, the less each adds.
  const double residual = std_of_weights / std::sqrt(2.0 * config.layers());
  v1::Layer layer = make_layer(name, "gpt2.block");
  set_attribute(layer, "heads", config.heads());
  set_attribute(layer, "dropout", config.dropout());
  add_layer_norm(layer, name + ".ln_1", width);
  add_map(layer, name + ".attn.c_attn", width, 3 * width, std_of_weights);
  add_map(layer, name + ".attn.c_proj", width, width, residual);
  add_layer_norm(layer, name + ".ln_2", width);
  add_map(layer, name + ".mlp.c_fc", width, 4 * width, std_of_weights);
  add_map(layer, name + ".mlp.c_proj", 4 * width, width, residual);
  return layer;
}

v1::Layer make_head(const v1::Gpt2& config) {
  v1::Layer layer = make_embedding("lm_head", "linear", config.vocab_size(), config.width());
  if (config.untied_head()) return layer;
  layer.mutable_parameters(0)->clear_init();
  layer.mutable_parameters(0)->set_tied_to(std::string(token_embedding) + ".weight");
  return layer;
}

}  // namespace

Result<std::vector<v1::Layer>> list_gpt2_layers(const v1::Gpt2& written) {
  TROUPE_ASSIGN(const v1::Gpt2 config, resolve(written));
  std::vector<v1::Layer> layers = {
      make_embedding(token_embedding, "embedding", config.vocab_size(), config.width()),
      make_embedding("transformer.wpe", "position_embedding", config.context(), config.width()),
      make_layer("transformer.drop", "dropout")};
  set_attribute(layers.back(), "rate", config.dropout());
  for (std::uint32_t i = 0; i < config.layers(); ++i) layers.push_back(make_block(config, i));
  layers.push_back(make_layer("transformer.ln_f", "layer_norm"));
  add_layer_norm(layers.back(), "transformer.ln_f", config.width());
  layers.push_back(make_head(config));
  return layers;
}

}  // namespace troupe::mp
