#pragma once

#include <functional>
#include <string>

#include "troupe/result.hpp"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/runtime/v1/node.pb.h"

namespace troupe {

/// What a job or node file must hold beyond what the options of its fields say: unique node
/// names, none of them the driver's; well-formed addresses; limits that fit each other.
Result<void> check_rules(const runtime::v1::Job& job,
                         const std::function<std::string(const std::string& path)>& locate);
Result<void> check_rules(const runtime::v1::Node& node,
                         const std::function<std::string(const std::string& path)>& locate);

}  // namespace troupe
