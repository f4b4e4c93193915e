#pragma once

#include <string>
#include <vector>

#include "core/optimizer_config.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Checks that names of layer libraries are names and no paths, since nodes look for them in
/// directories of their own, and that none is there twice.
Result<void> check_layer_libraries(const std::vector<std::string>& names, const Locate& locate);

}  // namespace troupe::mp
