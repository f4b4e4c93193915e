#pragma once

#include "troupe/api.hpp"

namespace troupe {

/// The whole life of a worker process (`troupe worker`, started by a launcher or a driver, never
/// by hand): reads its specification from the inherited pipe, loads its plugins, listens, answers
/// where, serves its driver, and ends when asked, when its driver is lost or, at once, when its
/// parent is gone. Returns the exit code. Needs BlockedSignals.
TROUPE_API int run_worker();

}  // namespace troupe
