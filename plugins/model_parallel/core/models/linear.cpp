#include "core/models/linear.hpp"

#include <cmath>

namespace troupe::mp {

void add_linear_parameters(v1::Layer& layer, const std::string& prefix, std::int64_t inputs,
                           std::int64_t outputs, bool bias) {
  // Linear.reset_parameters: Kaiming uniform with a = sqrt(5) comes to this bound.
  const double bound = 1.0 / std::sqrt(static_cast<double>(inputs));
  auto* weight = layer.add_parameters();
  weight->set_name(prefix + ".weight");
  weight->add_shape(outputs);
  weight->add_shape(inputs);
  weight->mutable_init()->set_uniform_bound(bound);
  if (!bias) return;
  auto* offset = layer.add_parameters();
  offset->set_name(prefix + ".bias");
  offset->add_shape(outputs);
  offset->mutable_init()->set_uniform_bound(bound);
}

}  // namespace troupe::mp
