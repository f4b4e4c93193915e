#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/netprobe/v1/netprobe.pb.h"
#include "troupe/runtime/v1/link_profile.pb.h"

namespace troupe::netprobe {

/// The measurement of one direction of a link: first empty messages for the round trip, then
/// messages of each size, one at a time, each sent when the one before was answered. The first of
/// every series warms buffers up and does not count. Times are seconds of any steady clock.
class LinkMeasurement {
 public:
  explicit LinkMeasurement(const v1::Measure& plan);

  struct Ping {
    std::uint64_t number;
    std::uint64_t bytes;
  };

  /// The next message, which is sent at `now`; none when the measurement is complete. To be
  /// called once at the beginning and then after each answer.
  std::optional<Ping> next(double now);

  /// The peer has the message `number` whole. False, and no effect, if that is not the one that is
  /// under way.
  bool answered(std::uint64_t number, double now);

  /// What was measured, once complete. `from` names the measuring node. The time of a transfer is
  /// the time until the answer less half a round trip, which the answer took.
  runtime::v1::LinkProfile::Link result(const std::string& from) const;

 private:
  struct Series {
    std::uint64_t bytes;
    std::uint32_t count;  ///< messages that count
    std::vector<double> seconds;
  };

  std::string to_;
  std::vector<Series> series_;  ///< the first one is the round trip's
  std::size_t current_ = 0;
  bool warm_ = false;  ///< the current series had its first message
  bool under_way_ = false;
  std::uint64_t number_ = 0;  ///< of the message under way
  double sent_at_ = 0;
};

}  // namespace troupe::netprobe
