#include "core/schedule.hpp"

#include <algorithm>

namespace troupe::mp {

StageSchedule::StageSchedule(v1::Schedule kind, std::uint32_t stage, std::uint32_t stage_count)
    : kind_(kind == v1::SCHEDULE_UNSPECIFIED ? v1::SCHEDULE_ONE_F_ONE_B : kind),
      stage_(stage),
      stage_count_(stage_count) {}

std::uint32_t StageSchedule::window(std::uint32_t micro_batches) const {
  if (kind_ == v1::SCHEDULE_GPIPE) return micro_batches;
  return std::min(micro_batches, stage_count_ - stage_);
}

bool StageSchedule::may_forward(std::uint32_t forwards_done, std::uint32_t backwards_done,
                                std::uint32_t micro_batches) const {
  return forwards_done < micro_batches && forwards_done - backwards_done < window(micro_batches);
}

bool StageSchedule::may_backward(std::uint32_t forwards_done, std::uint32_t backwards_done,
                                 std::uint32_t micro_batches) const {
  if (kind_ == v1::SCHEDULE_GPIPE && forwards_done < micro_batches) return false;
  return backwards_done < forwards_done;
}

std::vector<ScheduledOperation> StageSchedule::ideal_order(std::uint32_t micro_batches) const {
  std::vector<ScheduledOperation> order;
  order.reserve(2 * static_cast<std::size_t>(micro_batches));
  std::uint32_t forwards = 0;
  // Warm-up: fill the window; steady state: one backward makes room for one forward; cool-down:
  // the backwards that are left.
  while (forwards < window(micro_batches)) order.push_back({false, forwards++});
  for (std::uint32_t backwards = 0; backwards < micro_batches; ++backwards) {
    order.push_back({true, backwards});
    if (forwards < micro_batches) order.push_back({false, forwards++});
  }
  return order;
}

double ideal_bubble(std::uint32_t stage_count, std::uint32_t micro_batches) {
  return static_cast<double>(stage_count - 1) /
         (static_cast<double>(micro_batches) + stage_count - 1);
}

}  // namespace troupe::mp
