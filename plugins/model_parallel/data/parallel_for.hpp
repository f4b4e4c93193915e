#pragma once

#include <cstddef>
#include <functional>

namespace troupe::mp {

/// Calls `work(i)` once for each i in [0, count), on at most `threads` threads including the
/// caller's, and returns when all calls have. Which thread takes which call is left to chance, so
/// calls may share nothing they change. `work` must not throw. Goes on with fewer threads when the
/// system grants no more.
void parallel_for(std::size_t count, std::size_t threads,
                  const std::function<void(std::size_t)>& work);

}  // namespace troupe::mp
