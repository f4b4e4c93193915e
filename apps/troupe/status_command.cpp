#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common.hpp"
#include "fetch_status.hpp"
#include "troupe/json.hpp"
#include "troupe/parcel.hpp"

namespace troupe::cli {
namespace {

using runtime::v1::Status;

constexpr std::chrono::seconds timeout{3};

struct Options {
  std::string address;
  bool json = false;
};

const char* class_of(const Status::LinkStatus& link) {
  return to_string(static_cast<TrafficClass>(link.traffic()));
}

std::string mebibytes(std::uint64_t count) {
  return fmt::format("{:.1f} MiB", static_cast<double>(count) / (1 << 20));
}

std::string describe(const Status::LinkStatus& link) {
  std::string text =
      fmt::format("link to {}  class {}  {} messages  {}  {} queued  in flight {} (peak {} of {})",
                  link.peer(), class_of(link), link.messages(), mebibytes(link.bytes()),
                  link.queued_messages(), mebibytes(link.bytes_in_flight()),
                  mebibytes(link.peak_bytes_in_flight()), mebibytes(link.chunk_budget_bytes()));
  // Small control messages are not counted against what a receiver may hold.
  if (static_cast<TrafficClass>(link.traffic()) != TrafficClass::control)
    text += fmt::format("  held peak {} of {}", mebibytes(link.peak_admission_bytes()),
                        mebibytes(link.admission_budget_bytes()));
  return text;
}

void print_text(const Status& status) {
  fmt::print("node {}  troupe {}  up {:.0f} s  {} resident{}\n", status.name(), status.version(),
             status.uptime_seconds(), mebibytes(status.resident_bytes()),
             status.draining() ? "  draining" : "");
  for (const auto& worker : status.workers())
    fmt::print("worker {}  job {}  node {}  {}\n", worker.pid(), worker.job(), worker.node(),
               worker.address());
  for (const auto& actor : status.hosted())
    fmt::print("actor {}  {}\n", actor.name(), actor.factory());
  for (const auto& link : status.links()) fmt::print("{}\n", describe(link));
  if (status.refused_frames() != 0)
    fmt::print("refused {} frames of strangers or other runs\n", status.refused_frames());
  if (status.workers().empty() && status.hosted().empty()) fmt::print("idle\n");
}

std::string link_json(const Status::LinkStatus& link) {
  return JsonObject()
      .add("peer", link.peer())
      .add("class", class_of(link))
      .add("messages", link.messages())
      .add("bytes", link.bytes())
      .add("queued_messages", link.queued_messages())
      .add("bytes_in_flight", link.bytes_in_flight())
      .add("peak_bytes_in_flight", link.peak_bytes_in_flight())
      .add("chunk_budget_bytes", link.chunk_budget_bytes())
      .add("peak_admission_bytes", link.peak_admission_bytes())
      .add("admission_budget_bytes", link.admission_budget_bytes())
      .text();
}

void print_json(const Status& status) {
  std::vector<std::string> workers, actors, links;
  for (const auto& worker : status.workers())
    workers.push_back(JsonObject()
                          .add("pid", static_cast<std::uint64_t>(worker.pid()))
                          .add("job", worker.job())
                          .add("node", worker.node())
                          .add("address", worker.address())
                          .text());
  for (const auto& actor : status.hosted())
    actors.push_back(JsonObject().add("name", actor.name()).add("factory", actor.factory()).text());
  for (const auto& link : status.links()) links.push_back(link_json(link));
  fmt::print("{}\n", JsonObject()
                         .add("node", status.name())
                         .add("version", status.version())
                         .add("uptime_seconds", status.uptime_seconds())
                         .add("resident_bytes", status.resident_bytes())
                         .add("refused_frames", status.refused_frames())
                         .add_json("draining", status.draining() ? "true" : "false")
                         .add_json("workers", json_array(workers))
                         .add_json("actors", json_array(actors))
                         .add_json("links", json_array(links))
                         .text());
}

int show(const Options& options) {
  auto status = fetch_status(options.address, timeout);
  if (!status) return report(status.error());
  if (options.json)
    print_json(*status);
  else
    print_text(*status);
  return 0;
}

}  // namespace

void add_status_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("status", "What a node hosts and does now");
  command->add_option("address", options->address, "HOST:PORT of a node")->required();
  command->add_flag("--json", options->json, "As one JSON object, sizes in bytes");
  command->callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace troupe::cli
