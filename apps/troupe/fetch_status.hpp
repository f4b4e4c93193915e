#pragma once

#include <chrono>
#include <string>

#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe::cli {

/// Asks the launcher or worker at `HOST:PORT` what it hosts. Errors (cluster): nobody answers in
/// time, or not as this version of Troupe does.
Result<runtime::v1::Status> fetch_status(const std::string& address,
                                         std::chrono::milliseconds timeout);

}  // namespace troupe::cli
