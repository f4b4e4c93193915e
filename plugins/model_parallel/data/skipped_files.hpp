#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::mp {

/// The files that a data set left out, each counted once however often its turn came. Safe to use
/// from several threads.
class SkippedFiles {
 public:
  /// A file and what is wrong with it.
  using Entry = std::pair<std::string, std::string>;

  void add(const std::string& path, const std::string& reason);

  std::uint64_t count() const;
  /// In the order of their paths.
  std::vector<Entry> entries() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> reasons_;
};

}  // namespace troupe::mp
