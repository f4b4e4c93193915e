#include "core/models/linear.hpp"

#include <cmath>

#include "core/models/layer_builder.hpp"

namespace troupe::mp {

void add_linear_parameters(v1::Layer& layer, const std::string& prefix, std::int64_t inputs,
                           std::int64_t outputs, bool bias) {
  // Linear.reset_parameters: Kaiming uniform with a = sqrt(5) comes to this bound.
  const v1::Init init = uniform_init(1.0 / std::sqrt(static_cast<double>(inputs)));
  add_linear_parameters(layer, prefix, inputs, outputs, init, bias ? init : v1::Init());
}

void add_linear_parameters(v1::Layer& layer, const std::string& prefix, std::int64_t inputs,
                           std::int64_t outputs, const v1::Init& weight, const v1::Init& bias) {
  add_parameter(layer, prefix + ".weight", {outputs, inputs}, weight);
  if (bias.kind_case() != v1::Init::KIND_NOT_SET)
    add_parameter(layer, prefix + ".bias", {outputs}, bias);
}

}  // namespace troupe::mp
