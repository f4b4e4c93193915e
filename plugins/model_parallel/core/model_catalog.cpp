#include "core/model_catalog.hpp"

#include "core/models/gpt2.hpp"
#include "core/models/layer_list.hpp"
#include "core/models/mlp.hpp"
#include "core/models/resnet.hpp"
#include "core/models/vgg.hpp"
#include "core/models/vision_transformer.hpp"

namespace troupe::mp {

Result<std::vector<v1::Layer>> list_layers(const v1::Model& model) {
  switch (model.kind_case()) {
    case v1::Model::kResnet: return list_resnet_layers(model.resnet());
    case v1::Model::kLayers: return list_written_layers(model.layers());
    case v1::Model::kVgg: return list_vgg_layers(model.vgg());
    case v1::Model::kMlp: return list_mlp_layers(model.mlp());
    case v1::Model::kVit: return list_vision_transformer_layers(model.vit());
    case v1::Model::kGpt2: return list_gpt2_layers(model.gpt2());
    default:
      return bad_input("model", "no kind of model",
                       "write `resnet`, `vgg`, `mlp`, `vit`, `gpt2` or `layers`");
  }
}

}  // namespace troupe::mp
