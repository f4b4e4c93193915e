#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Index of the layer that `name` means: a layer's name, or a group ("layer3" is the first layer
/// called "layer3" or "layer3.<something>"). An error lists names that are near.
Result<std::size_t> find_first_layer(const std::vector<v1::Layer>& layers, const std::string& name,
                                     const std::string& where);

/// First layer of each stage, in order, each stage with at least one layer. `locate` turns a
/// field's path into the place an error names.
Result<std::vector<std::size_t>> cut_layers(
    const std::vector<v1::Layer>& layers, const std::vector<v1::Stage>& stages,
    const std::function<std::string(const std::string&)>& locate);

}  // namespace troupe::mp
