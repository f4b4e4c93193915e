#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "troupe/api.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/node.pb.h"

namespace troupe {

inline constexpr std::uint16_t default_node_port = 7856;

/// The whole life of a launcher (`troupe node`): listens as the node file says, forks a worker for
/// each job that asks for one, and stops them when their driver leaves. `on_ready` gets
/// `HOST:PORT` once it accepts work. Returns when a shutdown signal came and all workers are gone;
/// a second signal does not wait for the jobs here. Loads no plugin. Needs BlockedSignals.
///
/// Errors: bad_input for a host beyond loopback without `insecure: true`, for a port that is
/// taken; internal when it can serve no longer.
TROUPE_API Result<void> run_launcher(const runtime::v1::Node& node,
                                     const std::filesystem::path& binary,
                                     const std::function<void(const std::string&)>& on_ready);

}  // namespace troupe
