#pragma once

#include <functional>
#include <string>

#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/runtime/v1/node.pb.h"

namespace troupe {

/// What a job or node file, or a request for a worker, must hold beyond what the options of its
/// fields say: names that can be parts of file names; unique node names, none of them the driver's;
/// well-formed addresses and environment variables; limits that fit each other.
Result<void> check_rules(const runtime::v1::Job& job,
                         const std::function<std::string(const std::string& path)>& locate);
Result<void> check_rules(const runtime::v1::Node& node,
                         const std::function<std::string(const std::string& path)>& locate);
Result<void> check_rules(const runtime::v1::StartWorker& request,
                         const std::function<std::string(const std::string& path)>& locate);

}  // namespace troupe
