#pragma once

#include <memory>

#include "troupe/plugin.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The runner of a GenerateJob.
Result<std::unique_ptr<JobRunner>> make_generate_runner(const runtime::v1::Job& job,
                                                        std::shared_ptr<const ConfigSource> source);

}  // namespace troupe::mp
