#include "netprobe/core/report.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace troupe::netprobe {

namespace {

using Row = std::vector<std::string>;

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string format_rate(double bytes_per_second) {
  if (bytes_per_second < 1e6) return fmt::format("{:.1f} kB/s", bytes_per_second / 1e3);
  if (bytes_per_second < 1e9) return fmt::format("{:.1f} MB/s", bytes_per_second / 1e6);
  return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
}

std::vector<std::string> align(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      // Names to the left, numbers to the right.
      if (i < 2)
        line += fmt::format("{:<{}}  ", row[i], widths[i]);
      else
        line += fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::vector<std::string> format_table(const runtime::v1::LinkProfile& profile) {
  std::vector<Row> rows = {{"from", "to", "round trip"}};
  if (profile.links_size() != 0)
    for (const auto& transfer : profile.links(0).transfers())
      rows.front().push_back(format_size(transfer.bytes()));
  for (const auto& link : profile.links()) {
    Row row = {link.from(), link.to(), format_seconds(link.round_trip_seconds())};
    for (const auto& transfer : link.transfers())
      row.push_back(format_rate(transfer.bytes_per_second()));
    rows.push_back(std::move(row));
  }
  return align(rows);
}

std::string format_json(const runtime::v1::LinkProfile& profile) {
  using Json = nlohmann::ordered_json;
  Json links = Json::array();
  for (const auto& link : profile.links()) {
    Json transfers = Json::array();
    for (const auto& transfer : link.transfers())
      transfers.push_back(Json{{"bytes", transfer.bytes()},
                               {"seconds", transfer.seconds()},
                               {"bytes_per_second", transfer.bytes_per_second()}});
    links.push_back(Json{{"from", link.from()},
                         {"to", link.to()},
                         {"round_trip_seconds", link.round_trip_seconds()},
                         {"transfers", std::move(transfers)}});
  }
  return Json{{"links", std::move(links)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string format_size(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace troupe::netprobe
