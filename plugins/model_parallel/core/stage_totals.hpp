#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"

namespace troupe::mp {

/// Where the stages' time went, added up over their reports. Times are sums in seconds, peaks are
/// maxima, `live_bytes` is what the last report said.
class StageTotals {
 public:
  explicit StageTotals(std::size_t stages = 0);

  /// Reports of unknown stages are ignored.
  void add(const v1::StageTimes& report);
  void add(const std::vector<v1::StageTimes>& reports);

  const std::vector<v1::StageTimes>& by_stage() const { return totals_; }

 private:
  std::vector<v1::StageTimes> totals_;
};

}  // namespace troupe::mp
