#pragma once

#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Checks every `tied_to`: the owner is a parameter of an earlier layer, has the same shape and is
/// not tied itself; the tied one has no initial value and is no buffer. Errors are located at
/// "model.layers.layers[<layer>]...".
Result<void> check_tied_parameters(const std::vector<v1::Layer>& layers);

}  // namespace troupe::mp
