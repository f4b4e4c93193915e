#pragma once

#include "app/machine.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Whether a job may set these variables for a worker on someone else's machine: those of the
/// arithmetic libraries, by prefix, and none that names files to load. A variable such as
/// LD_PRELOAD would run the sender's code. Errors (bad_input) name the variable.
TROUPE_API Result<void> check_requested_environment(const std::string& where,
                                                    const Environment& environment);

}  // namespace troupe
