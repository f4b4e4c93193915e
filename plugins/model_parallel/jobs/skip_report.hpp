#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/data_actor.hpp"
#include "data/skipped_files.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {

/// Tells at the end of a job which files its data sets left out.
class SkipReport {
 public:
  /// Remembers what a data set counts; before the feed is handed on.
  void watch(const FeedConfig& feed);

  /// A line on the console and an event for each file, if there are any. Returns how many.
  std::uint64_t write(JobSession& session) const;

 private:
  std::vector<std::shared_ptr<const SkippedFiles>> watched_;
};

}  // namespace troupe::mp
