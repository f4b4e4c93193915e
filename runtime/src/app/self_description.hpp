#pragma once

#include <string>

#include "troupe/api.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

/// What this process says of itself as node `name`.
TROUPE_API runtime::v1::NodeInfo describe_this_process(const std::string& name);

}  // namespace troupe
