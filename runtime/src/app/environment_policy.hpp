#pragma once

#include "app/machine.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Whether a job may set these variables for a worker on someone else's machine: a list of those of
/// the arithmetic libraries, by name, none of which names a file. A variable such as LD_PRELOAD
/// would run the sender's code, and CUDA_COREDUMP_FILE would write where the sender likes. Errors
/// (bad_input) name the variable.
TROUPE_API Result<void> check_requested_environment(const std::string& where,
                                                    const Environment& environment);

}  // namespace troupe
