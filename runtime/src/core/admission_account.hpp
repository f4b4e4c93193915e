#pragma once

#include <cstdint>
#include <map>

#include "troupe/api.hpp"
#include "troupe/parcel.hpp"

namespace troupe {

/// Bytes that the receiving actor of one flow holds, by admission unit. A parcel is admissible if
/// nothing of another unit is held or if it fits into the budget beside what is held. So never
/// more is held than the larger of the budget and one unit, and a unit is always admitted as a
/// whole once the units before it are released.
class TROUPE_API AdmissionAccount {
 public:
  explicit AdmissionAccount(std::uint64_t budget) : budget_(budget) {}

  bool admits(std::uint64_t bytes, AdmissionUnit unit) const;
  void take(std::uint64_t bytes, AdmissionUnit unit);

  /// False, without effect, for more bytes of `unit` than are held.
  [[nodiscard]] bool give_back(std::uint64_t bytes, AdmissionUnit unit);

  std::uint64_t held() const { return held_; }
  std::uint64_t peak() const { return peak_; }

 private:
  std::uint64_t budget_;
  std::uint64_t held_ = 0;
  std::uint64_t peak_ = 0;
  std::map<AdmissionUnit, std::uint64_t> held_by_unit_;  // no zero entries
};

}  // namespace troupe
