#pragma once

#include <string>
#include <vector>

#include "troupe/runtime/v1/link_profile.pb.h"

namespace troupe::netprobe {

/// A heading and a line for each link, columns aligned: round trip, then the bandwidth for each
/// message size.
std::vector<std::string> format_table(const runtime::v1::LinkProfile& profile);

/// One JSON object on one line: {"links":[{"from":..., "to":..., "round_trip_seconds":...,
/// "transfers":[{"bytes":..., "seconds":..., "bytes_per_second":...}]}]}.
std::string format_json(const runtime::v1::LinkProfile& profile);

/// "4 KiB", "1.5 MiB", "300 B".
std::string format_size(std::uint64_t bytes);

}  // namespace troupe::netprobe
