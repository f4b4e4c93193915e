#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// How many values each earlier layer produces, by name.
using OutputCounts = std::map<std::string, std::uint32_t>;

/// Checks that each read of `layer` names either a field of the batch or an output of a layer in
/// `earlier`. `path` is the field of the layer; errors name the field of the read.
Result<void> check_reads(const v1::Layer& layer, const std::string& path,
                         const OutputCounts& earlier);

}  // namespace troupe::mp
