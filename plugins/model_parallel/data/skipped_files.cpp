#include "data/skipped_files.hpp"

namespace troupe::mp {

void SkippedFiles::add(const std::string& path, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reasons_.emplace(path, reason);
}

std::uint64_t SkippedFiles::count() const {
  const std::lock_guard lock(mutex_);
  return reasons_.size();
}

std::vector<SkippedFiles::Entry> SkippedFiles::entries() const {
  const std::lock_guard lock(mutex_);
  return {reasons_.begin(), reasons_.end()};
}

}  // namespace troupe::mp
