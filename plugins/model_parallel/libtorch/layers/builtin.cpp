#include "libtorch/layers/builtin.hpp"

namespace troupe::mp::libtorch {

Result<void> add_builtin_layers(LayerRegistry& registry) {
  TROUPE_TRY(add_resnet_layers(registry));
  TROUPE_TRY(add_simple_layers(registry));
  TROUPE_TRY(add_image_layers(registry));
  TROUPE_TRY(add_token_layers(registry));
  TROUPE_TRY(add_regularisation_layers(registry));
  TROUPE_TRY(add_vgg_layers(registry));
  TROUPE_TRY(add_vit_layers(registry));
  TROUPE_TRY(add_gpt2_layers(registry));
  return add_loss_layers(registry);
}

}  // namespace troupe::mp::libtorch
