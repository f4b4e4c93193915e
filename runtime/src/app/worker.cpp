#include "app/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include "actor/control_codec.hpp"
#include "actor/node_actor.hpp"
#include "actor/published_actor.hpp"
#include "app/application.hpp"
#include "app/child_processes.hpp"
#include "app/pipe.hpp"
#include "app/self_description.hpp"
#include "app/signals.hpp"
#include "app/stop_request.hpp"
#include "app/watchdog.hpp"
#include "core/host_port.hpp"
#include "core/run_key.hpp"
#include "core/seconds.hpp"
#include "plugin/host.hpp"
#include "transport/basp_transport.hpp"
#include "transport/endpoint.hpp"
#include "troupe/log.hpp"
#include "troupe/strict_parse.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using std::chrono::milliseconds;

/// Ends the process the moment its parent is gone: even kill -9 of the parent closes the pipe.
void watch_lifeline() {
  std::thread([] {
    for (;;) {
      char byte;
      const ssize_t count = read(child_input_fd, &byte, 1);
      if (count == 0 || (count < 0 && errno != EINTR)) _exit(0);
    }
  }).detach();
}

Result<v1::WorkerSpec> read_spec() {
  TROUPE_ASSIGN(const std::string bytes, read_pipe_message(child_input_fd));
  v1::WorkerSpec spec;
  if (!parse_strictly(bytes, spec)) return internal_error("worker", "unreadable specification");
  if (spec.run_key().size() != RunKey::size)
    return internal_error("worker", "a specification without a run key");
  return spec;
}

void answer_parent(const Result<v1::WorkerStarted>& started) {
  v1::WorkerReady ready;
  if (started)
    *ready.mutable_started() = *started;
  else
    *ready.mutable_failure() = to_failure(started.error());
  (void)write_pipe_message(child_answer_fd, ready.SerializeAsString());
}

/// The actors of a worker and where they listen.
class Worker {
 public:
  Worker(const v1::WorkerSpec& spec, StopRequest& stop) : spec_(spec), stop_(stop) {
    for (const std::string& directory : spec.plugin_directories())
      directories_.emplace_back(directory);
  }

  Result<v1::WorkerStarted> start() {
    // Plugins load before the actor system exists: what they register must be there first.
    plugins_ = std::make_unique<PluginHost>(directories_);
    for (const std::string& type : spec_.plugins()) TROUPE_TRY(plugins_->load_for_type(type));
    application_ = std::make_unique<Application>();
    EndpointConfig endpoint;
    endpoint.node = spec_.node();
    endpoint.limits = spec_.links();
    endpoint.heartbeat = spec_.heartbeat();
    endpoint.transport = std::make_shared<BaspTransport>();
    TROUPE_ASSIGN(run_key_, RunKey::from_bytes(spec_.run_key()));
    endpoint.run_key = run_key_;
    endpoint_ = spawn_endpoint(application_->system(), endpoint);
    node_ = spawn_node_actor(application_->system(), node_config());
    node_->attach_functor([&stop = stop_](const caf::error&) {
      stop.ask({"the node actor ended", 1, milliseconds(0)});
    });
    TROUPE_ASSIGN(port_, application_->network().publish(node_, spec_.host(), 0));
    v1::WorkerStarted started;
    started.set_address(to_string(HostPort{spec_.host(), port_}));
    started.set_pid(getpid());
    return started;
  }

  /// Stop intake, end the actors, wait for them.
  void shut_down() {
    if (!application_) return;
    if (node_) {
      if (port_ != 0) application_->network().unpublish(node_, port_);
      end_published_and_wait(node_);
    }
    if (endpoint_) caf::anon_send_exit(endpoint_, caf::exit_reason::user_shutdown);
    // A handle to a detached actor that outlives the system would keep it waiting.
    node_ = nullptr;
    endpoint_ = nullptr;
    application_.reset();
  }

  /// Whether the driver has said hello.
  bool has_driver() const { return driver_seen_.load(); }

 private:
  NodeActorConfig node_config() {
    NodeActorConfig config;
    config.info = describe_this_process(spec_.node());
    config.run_key = run_key_;
    config.nodes = {spec_.nodes().begin(), spec_.nodes().end()};
    config.endpoint = endpoint_;
    config.plugins = plugins_.get();
    config.network = &application_->network();
    config.policy = ExecutionPolicy::detached;
    config.on_driver = [this] { driver_seen_ = true; };
    config.on_drain = [this](milliseconds deadline) { stop_.ask({"drained", 0, deadline}); };
    config.on_driver_lost = [this](const std::string& reason) {
      stop_.ask({"driver lost: " + reason, 3, milliseconds(1000)});
    };
    return config;
  }

  const v1::WorkerSpec& spec_;
  StopRequest& stop_;
  std::vector<std::filesystem::path> directories_;
  std::unique_ptr<PluginHost> plugins_;
  std::unique_ptr<Application> application_;
  RunKey run_key_;
  caf::actor endpoint_;
  caf::actor node_;
  std::uint16_t port_ = 0;
  std::atomic<bool> driver_seen_{false};
};

/// Waits for the end; a worker that no driver calls within its time gives up.
Stop wait_for_end(StopRequest& stop, const Worker& worker, milliseconds connect_timeout) {
  if (auto early = stop.wait_for(connect_timeout)) return *early;
  if (!worker.has_driver())
    stop.ask({fmt::format("no driver called within {} ms", connect_timeout.count()), 3,
              milliseconds(1000)});
  return stop.wait();
}

}  // namespace

int run_worker() {
  if (fcntl(child_input_fd, F_GETFD) < 0 || fcntl(child_answer_fd, F_GETFD) < 0) {
    log_error("worker", "not started by a launcher or a driver; use troupe node or troupe run");
    return 2;
  }
  // Nothing this process starts may hold its parent's pipes open.
  fcntl(child_input_fd, F_SETFD, FD_CLOEXEC);
  fcntl(child_answer_fd, F_SETFD, FD_CLOEXEC);
  auto spec = read_spec();
  if (!spec) {
    log_error("worker", "{}", spec.error().to_string());
    return 2;
  }
  set_log_node(spec->node());
  watch_lifeline();

  StopRequest stop;
  const milliseconds drain = to_milliseconds(spec->drain_seconds(), milliseconds(10000));
  SignalWatcher signals([&](int signal) { stop.ask({strsignal(signal), 0, drain}); });
  Worker worker(*spec, stop);
  auto started = worker.start();
  answer_parent(started);
  Stop reason{"failed to start", started ? 0 : 1, milliseconds(1000)};
  if (started) {
    log_debug("worker", "listens on {}", started->address());
    reason = wait_for_end(stop, worker,
                          to_milliseconds(spec->connect_timeout_seconds(), milliseconds(60000)));
  }
  log_debug("worker", "ends: {}", reason.reason);
  Watchdog watchdog(std::max(reason.deadline, milliseconds(100)), reason.exit_code);
  worker.shut_down();
  return reason.exit_code;
}

}  // namespace troupe
