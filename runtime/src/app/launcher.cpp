#include "app/launcher.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <caf/send.hpp>

#include "actor/published_actor.hpp"
#include "app/application.hpp"
#include "app/child_processes.hpp"
#include "app/launcher_actor.hpp"
#include "app/paths.hpp"
#include "app/self_description.hpp"
#include "app/signals.hpp"
#include "app/stop_request.hpp"
#include "app/watchdog.hpp"
#include "core/host_port.hpp"
#include "troupe/log.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

/// Of the actor system, once all workers are gone.
constexpr milliseconds closing_limit{2000};
constexpr double default_drain_seconds = 10;

Result<void> check_host(const runtime::v1::Node& node, const std::string& host) {
  if (is_loopback(host)) return {};
  if (!node.insecure())
    return bad_input("node " + node.name(),
                     "listens on " + host + ", beyond this machine, without TLS",
                     "use host 127.0.0.1, or set `insecure: true` on a network you trust");
  log_warning("launcher",
              "listens on {} without TLS: anyone who can reach the port can run jobs here", host);
  return {};
}

LauncherActorConfig actor_config(const runtime::v1::Node& node, const std::string& host,
                                 const std::filesystem::path& binary, milliseconds drain,
                                 ChildProcesses& children) {
  LauncherActorConfig config;
  config.info = describe_this_process(node.name());
  config.host = host;
  config.binary = binary;
  const std::vector<std::filesystem::path> configured(node.plugin_directories().begin(),
                                                      node.plugin_directories().end());
  for (const auto& directory : plugin_directories(configured, binary))
    config.plugin_directories.push_back(directory.string());
  config.environment = Environment(node.environment().begin(), node.environment().end());
  config.drain = drain;
  config.children = &children;
  return config;
}

/// Whoever names a port wants that one; the error says what to change.
Error listen_error(const runtime::v1::Node& node, const std::string& host, std::uint16_t port,
                   const Error& cause) {
  return bad_input(
      "node " + node.name(),
      fmt::format("cannot listen on {}: {}", to_string(HostPort{host, port}), cause.what),
      "set another `host` or `port` in the node file, or stop what uses the port");
}

}  // namespace

Result<void> run_launcher(const runtime::v1::Node& node, const std::filesystem::path& binary,
                          const std::function<void(const std::string&)>& on_ready) {
  const std::string host = node.host().empty() ? "127.0.0.1" : node.host();
  TROUPE_TRY(check_host(node, host));
  const auto port = static_cast<std::uint16_t>(node.has_port() ? node.port() : default_node_port);
  const double seconds = node.drain_seconds() > 0 ? node.drain_seconds() : default_drain_seconds;
  const milliseconds drain(static_cast<std::int64_t>(seconds * 1000));

  StopRequest stop;
  ChildProcesses children;
  std::atomic<bool> asked{false};
  SignalWatcher signals([&](int signal) {
    if (asked.exchange(true)) children.kill_all();
    stop.ask({strsignal(signal), 0, drain});
  });
  auto application = std::make_unique<Application>();
  auto actor = spawn_launcher_actor(application->system(),
                                    actor_config(node, host, binary, drain, children));
  // A launcher that cannot answer must not look as if it could.
  actor->attach_functor([&](const caf::error&) {
    stop.ask({"its actor has ended", 1, milliseconds(0)});
  });
  auto bound = application->network().publish(actor, host, port);
  Result<void> outcome;
  if (bound) {
    on_ready(to_string(HostPort{host, *bound}));
    const Stop reason = stop.wait();
    log_info("launcher", "ends: {}", reason.reason);
    if (reason.exit_code != 0)
      outcome = internal_error("node " + node.name(), reason.reason, "start it again");
    application->network().unpublish(actor, *bound);
  } else {
    outcome = listen_error(node, host, port, bound.error());
  }

  {
    // Without its actor nobody drains.
    const milliseconds patience = outcome ? drain + abandoned_grace : milliseconds(0);
    Watchdog watchdog(patience + std::chrono::seconds(5), 1, [&] { children.kill_all(); });
    caf::anon_send(actor, LauncherDrain{});
    if (!outcome || !children.wait_all(drain)) children.terminate_all(abandoned_grace);
    children.wait_all(abandoned_grace);
    children.kill_all();
    children.wait_all(std::chrono::seconds(2));
  }
  // All that was promised is done. What is left is this process's own, and its end settles that.
  Watchdog watchdog(closing_limit, outcome ? 0 : exit_code(outcome.error().code));
  end_published_and_wait(actor);
  actor = nullptr;
  application.reset();
  return outcome;
}

}  // namespace troupe
