#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <caf/scoped_actor.hpp>

#include "actor/call_node.hpp"
#include "actor/control_codec.hpp"
#include "app/application.hpp"
#include "common.hpp"

namespace troupe::cli {
namespace {

using runtime::v1::Status;

constexpr std::chrono::seconds timeout{3};

Result<Status> fetch_status(const std::string& address) {
  Application application;
  caf::scoped_actor self(application.system());
  TROUPE_ASSIGN(auto node, call_node(*self.ptr(), application.network(), {"", address, ""},
                                     make_tool_hello(), nullptr, timeout));
  runtime::v1::Request request;
  request.mutable_get_status();
  Result<runtime::v1::Response> response = cluster_error(address, "no answer");
  self->request(node.control, timeout, encode(request))
      .receive([&](const ControlBytes& bytes) { response = decode_response(bytes); },
               [&](const caf::error& error) {
                 response =
                     cluster_error(address, "no answer: " + application.system().render(error));
               });
  if (!response) return std::move(response).error();
  return response->status();
}

std::string bytes(std::uint64_t count) {
  const double mebibytes = static_cast<double>(count) / (1 << 20);
  return fmt::format("{:.1f} MiB", mebibytes);
}

void print(const Status& status) {
  std::printf("node %s  troupe %s  up %.0f s  %s resident%s\n", status.name().c_str(),
              status.version().c_str(), status.uptime_seconds(),
              bytes(status.resident_bytes()).c_str(), status.draining() ? "  draining" : "");
  for (const auto& worker : status.workers())
    std::printf("worker %lld  job %s  node %s  %s\n", static_cast<long long>(worker.pid()),
                worker.job().c_str(), worker.node().c_str(), worker.address().c_str());
  for (const auto& actor : status.hosted())
    std::printf("actor %s  %s\n", actor.name().c_str(), actor.factory().c_str());
  for (const auto& link : status.links())
    std::printf("link to %s  class %u  %llu messages  %s  in flight %s (peak %s)  held peak %s\n",
                link.peer().c_str(), link.traffic(),
                static_cast<unsigned long long>(link.messages()), bytes(link.bytes()).c_str(),
                bytes(link.bytes_in_flight()).c_str(), bytes(link.peak_bytes_in_flight()).c_str(),
                bytes(link.peak_admission_bytes()).c_str());
  if (status.refused_frames() != 0)
    std::printf("refused %llu frames of strangers or other runs\n",
                static_cast<unsigned long long>(status.refused_frames()));
  if (status.workers().empty() && status.hosted().empty()) std::printf("idle\n");
}

}  // namespace

void add_status_command(CLI::App& app, Action& action) {
  auto address = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("status", "What a node hosts and does now");
  command->add_option("address", *address, "HOST:PORT of a node")->required();
  command->callback([address, &action] {
    action = [address] {
      auto status = fetch_status(*address);
      if (!status) return report(status.error());
      print(*status);
      return 0;
    };
  });
}

}  // namespace troupe::cli
