#include "netprobe/core/link_measurement.hpp"

#include "netprobe/core/statistics.hpp"

namespace troupe::netprobe {

LinkMeasurement::LinkMeasurement(const v1::Measure& plan) : to_(plan.to()) {
  series_.push_back({0, plan.round_trips(), {}});
  for (const auto bytes : plan.sizes()) series_.push_back({bytes, plan.rounds(), {}});
}

std::optional<LinkMeasurement::Ping> LinkMeasurement::next(double now) {
  if (current_ == series_.size()) return std::nullopt;
  under_way_ = true;
  sent_at_ = now;
  return Ping{++number_, series_[current_].bytes};
}

bool LinkMeasurement::answered(std::uint64_t number, double now) {
  if (!under_way_ || number != number_) return false;
  under_way_ = false;
  Series& series = series_[current_];
  if (warm_) series.seconds.push_back(now - sent_at_);
  warm_ = true;
  if (series.seconds.size() >= series.count) {
    ++current_;
    warm_ = false;
  }
  return true;
}

runtime::v1::LinkProfile::Link LinkMeasurement::result(const std::string& from) const {
  runtime::v1::LinkProfile::Link link;
  link.set_from(from);
  link.set_to(to_);
  const double round_trip = median(series_.front().seconds);
  link.set_round_trip_seconds(round_trip);
  for (std::size_t i = 1; i < series_.size(); ++i) {
    const double answered = median(series_[i].seconds);
    // A small message can be answered faster than the median of the empty ones.
    const double seconds = answered > round_trip / 2 ? answered - round_trip / 2 : answered;
    auto* transfer = link.add_transfers();
    transfer->set_bytes(series_[i].bytes);
    transfer->set_seconds(seconds);
    if (seconds > 0)
      transfer->set_bytes_per_second(static_cast<double>(series_[i].bytes) / seconds);
  }
  return link;
}

}  // namespace troupe::netprobe
