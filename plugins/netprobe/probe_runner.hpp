#pragma once

#include <memory>

#include "troupe/plugin.hpp"
#include "troupe/result.hpp"

namespace troupe::netprobe {

/// Runs a v1::ProbeJob: a probe on every node, each ordered pair measured by itself.
Result<std::unique_ptr<JobRunner>> make_probe_runner(const runtime::v1::Job& job,
                                                     std::shared_ptr<const ConfigSource> source);

}  // namespace troupe::netprobe
