#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Layers written out by the user, checked: names are unique, reads refer to earlier layers or to
/// batch fields, no layer is a loss, parameters have usable shapes and are tied to earlier ones.
/// Layers of some kinds may leave their parameters unwritten (see complete_parameters). Error
/// locations are field paths from "model".
Result<std::vector<v1::Layer>> list_written_layers(const v1::LayerList& config);

}  // namespace troupe::mp
