#include "example_layers.hpp"
#include "troupe/model_parallel/layer_library.hpp"

namespace example_layers {

troupe::Result<void> add_layers(troupe::mp::libtorch::LayerRegistry& registry) {
  TROUPE_TRY(add_swiglu(registry));
  return add_focal_loss(registry);
}

}  // namespace example_layers

TROUPE_LAYER_LIBRARY(example_layers::add_layers);
