#include "data/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace troupe::mp {

void parallel_for(std::size_t count, std::size_t threads,
                  const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  const std::size_t wanted = std::min(count, threads);
  helpers.reserve(wanted);
  try {
    while (helpers.size() + 1 < wanted) helpers.emplace_back(take_turns);
  } catch (const std::system_error&) {
    // The threads there are do all of the work.
  }
  take_turns();
  for (auto& helper : helpers) helper.join();
}

}  // namespace troupe::mp
