#pragma once

#include <vector>

#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a model with their parameters, in order; no tensor is created.
Result<std::vector<v1::Layer>> list_layers(const v1::Model& model);

}  // namespace troupe::mp
