#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a model with their parameters, in order; no tensor is created. Defaults are
/// written out, except for `reads`. Errors are bad input; their `where` is the path of the field
/// from the job's message ("model.resnet.depth"), for ConfigSource::locate_plugin_field.
Result<std::vector<v1::Layer>> list_layers(const v1::Model& model);

}  // namespace troupe::mp
