#include "core/admission_account.hpp"

#include <algorithm>

namespace troupe {

bool AdmissionAccount::admits(std::uint64_t bytes, AdmissionUnit unit) const {
  const bool only_this_unit =
      held_by_unit_.empty() || (held_by_unit_.size() == 1 && held_by_unit_.count(unit) == 1);
  if (only_this_unit) return true;
  return held_ <= budget_ && bytes <= budget_ - held_;
}

void AdmissionAccount::take(std::uint64_t bytes, AdmissionUnit unit) {
  if (bytes == 0) return;
  held_ += bytes;
  held_by_unit_[unit] += bytes;
  peak_ = std::max(peak_, held_);
}

bool AdmissionAccount::give_back(std::uint64_t bytes, AdmissionUnit unit) {
  if (bytes == 0) return true;
  const auto entry = held_by_unit_.find(unit);
  if (entry == held_by_unit_.end() || bytes > entry->second) return false;
  held_ -= bytes;
  entry->second -= bytes;
  if (entry->second == 0) held_by_unit_.erase(entry);
  return true;
}

}  // namespace troupe
