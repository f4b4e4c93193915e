#pragma once

#include <cstdint>

#include "troupe/api.hpp"

namespace troupe {

/// Bytes on the wire of one link and class, against a budget. The receiver gives credit back as it
/// takes bytes off the wire. A piece is always admitted when nothing is in flight, so that one
/// larger than the whole budget still passes.
class TROUPE_API ByteCredit {
 public:
  explicit ByteCredit(std::uint64_t budget) : budget_(budget) {}

  bool admits(std::uint64_t bytes) const;
  void take(std::uint64_t bytes);

  /// False, without effect, for more bytes than are in flight: the peer's count is wrong.
  [[nodiscard]] bool give_back(std::uint64_t bytes);

  std::uint64_t budget() const { return budget_; }
  std::uint64_t in_flight() const { return in_flight_; }
  std::uint64_t peak() const { return peak_; }

 private:
  std::uint64_t budget_;
  std::uint64_t in_flight_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace troupe
