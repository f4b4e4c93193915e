#include "core/model_catalog.hpp"

#include "core/models/layer_list.hpp"
#include "core/models/resnet.hpp"

namespace troupe::mp {

Result<std::vector<v1::Layer>> list_layers(const v1::Model& model) {
  switch (model.kind_case()) {
    case v1::Model::kResnet: return list_resnet_layers(model.resnet());
    case v1::Model::kLayers: return list_written_layers(model.layers());
    default: return bad_input("model", "no kind of model", "write `resnet` or `layers`");
  }
}

}  // namespace troupe::mp
