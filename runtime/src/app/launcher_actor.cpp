#include "app/launcher_actor.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>
#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/response_promise.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actor/control_codec.hpp"
#include "actor/published_actor.hpp"
#include "actor/version.hpp"
#include "app/environment_policy.hpp"
#include "app/worker_start.hpp"
#include "config/loader.hpp"
#include "config/rules.hpp"
#include "core/resident_memory.hpp"
#include "core/run_key.hpp"
#include "troupe/guard.hpp"
#include "troupe/log.hpp"

namespace troupe {
namespace {

/// From the children's thread: a worker listens, or has failed to.
struct WorkerAnswered {
  pid_t pid;
  Result<runtime::v1::WorkerStarted> started;
};
/// From the children's thread: a worker is gone.
struct WorkerExited {
  pid_t pid;
  std::string how;
};

}  // namespace
}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WorkerAnswered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WorkerExited)

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using Clock = std::chrono::steady_clock;
using HelloAnswer = caf::result<ControlBytes, caf::strong_actor_ptr>;
using Promise = caf::typed_response_promise<ControlBytes>;

struct LauncherState {
  struct Worker {
    v1::Status::Worker description;
    RunKey run_key;
    caf::actor_addr owner;
    Promise starting;               ///< answered when it listens
    std::vector<Promise> stopping;  ///< answered when it is gone
  };

  caf::event_based_actor* self;
  LauncherActorConfig config;
  Machine machine = read_machine();
  Clock::time_point started = Clock::now();
  std::map<pid_t, Worker> workers;
  bool draining = false;

  explicit LauncherState(caf::event_based_actor* self) : self(self) {}

  caf::behavior make_behavior() {
    guard(*self);
    self->set_down_handler([this](const caf::down_msg& down) { owner_left(down.source); });
    return {
        [this](const ControlBytes& bytes, const caf::strong_actor_ptr&) -> HelloAnswer {
          auto answer = greet(bytes);
          return {answer ? encode(*answer) : encode_failure(answer.error()),
                  caf::strong_actor_ptr{}};
        },
        [this](const ControlBytes& bytes) -> caf::result<ControlBytes> {
          auto request = decode_request(bytes);
          if (!request) return encode_failure(request.error());
          return serve(*request);
        },
        [this](LauncherDrain) { drain(); },
        [this](EndActor) { self->quit(caf::exit_reason::user_shutdown); },
        [this](const WorkerAnswered& answered) { worker_answered(answered); },
        [this](const WorkerExited& exited) { worker_exited(exited); },
    };
  }

  std::string where() const { return "node " + config.info.name(); }

  Result<v1::Response> greet(const ControlBytes& bytes) {
    TROUPE_ASSIGN(auto request, decode_request(bytes));
    if (!request.has_hello()) return cluster_error(where(), "expected a hello");
    TROUPE_TRY(check_peer("the caller", request.hello()));
    v1::Response response;
    *response.mutable_hello() = config.info;
    return response;
  }

  caf::result<ControlBytes> serve(const v1::Request& request) {
    switch (request.kind_case()) {
      case v1::Request::kStartWorker: return start(request);
      case v1::Request::kStopWorker: return stop(request);
      case v1::Request::kGetStatus: return status();
      case v1::Request::kPing: return encode_done();
      default:
        return encode_failure(cluster_error(where(), "a launcher does not serve this request"));
    }
  }

  caf::result<ControlBytes> start(const v1::Request& order) {
    const v1::StartWorker& request = order.start_worker();
    // Its worker ends with it, so there must be someone.
    if (!self->current_sender())
      return encode_failure(cluster_error(where(), "a request for a worker that nobody has sent"));
    auto run_key = RunKey::from_bytes(order.run_key());
    if (!run_key) return encode_failure(cluster_error(where(), run_key.error().what));
    auto pid = fork_worker(request, *run_key);
    if (!pid) return encode_failure(pid.error());
    Worker& worker = workers[*pid];
    worker.run_key = *run_key;
    worker.description.set_job(request.job());
    worker.description.set_node(request.node());
    worker.description.set_pid(*pid);
    worker.owner = caf::actor_cast<caf::actor_addr>(self->current_sender());
    worker.starting = self->make_response_promise<ControlBytes>();
    self->monitor(worker.owner);
    log_info("launcher", "worker {} for node {} of job {}", *pid, request.node(), request.job());
    return worker.starting;
  }

  /// What a job file must fulfil, since the request need not come from one.
  Result<void> check_request(const v1::StartWorker& request) const {
    const auto locate = [this](const std::string&) { return where(); };
    TROUPE_TRY(validate(request, locate));
    return check_rules(request, locate);
  }

  Result<pid_t> fork_worker(const v1::StartWorker& request, const RunKey& run_key) {
    const Environment asked(request.environment().begin(), request.environment().end());
    if (draining) return cluster_error(where(), "is shutting down");
    TROUPE_TRY(check_request(request));
    TROUPE_TRY(check_requested_environment(where(), asked));
    v1::WorkerSpec spec;
    spec.set_job(request.job());
    spec.set_node(request.node());
    spec.set_host(config.host);
    spec.set_run_key(run_key.bytes());
    *spec.mutable_nodes() = request.nodes();
    *spec.mutable_heartbeat() = request.heartbeat();
    *spec.mutable_links() = request.links();
    *spec.mutable_plugins() = request.plugins();
    for (const std::string& directory : config.plugin_directories)
      spec.add_plugin_directories(directory);
    spec.set_connect_timeout_seconds(request.connect_timeout_seconds());
    spec.set_drain_seconds(std::chrono::duration<double>(config.drain).count());
    // Not a handle: the children would keep this actor, and with it its system, from ending.
    const auto tell = [me = self->address()](auto what) {
      if (const auto launcher = caf::actor_cast<caf::actor>(me))
        caf::anon_send(launcher, std::move(what));
    };
    return start_worker(
        *config.children, config.binary, spec,
        worker_environment(current_environment(), {asked, config.environment}, machine),
        [tell](pid_t pid, Result<v1::WorkerStarted> started) {
          tell(WorkerAnswered{pid, std::move(started)});
        },
        [tell](pid_t pid, const std::string& how) {
          tell(WorkerExited{pid, how});
        });
  }

  caf::result<ControlBytes> stop(const v1::Request& order) {
    const v1::StopWorker& request = order.stop_worker();
    const auto pid = static_cast<pid_t>(request.pid());
    auto worker = workers.find(pid);
    if (worker == workers.end()) return encode_done();  // gone already: what was asked for
    if (!worker->second.run_key.matches(order.run_key()))
      return encode_failure(cluster_error(where(), "the worker belongs to another run"));
    if (request.kill())
      config.children->kill(pid);
    else
      config.children->terminate(pid, config.drain);
    worker->second.stopping.push_back(self->make_response_promise<ControlBytes>());
    return worker->second.stopping.back();
  }

  ControlBytes status() {
    v1::Response response;
    v1::Status& status = *response.mutable_status();
    status.set_name(config.info.name());
    status.set_version(version());
    status.set_uptime_seconds(std::chrono::duration<double>(Clock::now() - started).count());
    status.set_resident_bytes(resident_bytes());
    status.set_draining(draining);
    for (const auto& entry : workers) *status.add_workers() = entry.second.description;
    return encode(response);
  }

  void drain() {
    draining = true;
    for (const auto& entry : workers) tell_owner(entry.second);
  }

  /// The job stops in order, and then its workers by StopWorker.
  static void tell_owner(const Worker& worker) {
    const auto owner = caf::actor_cast<caf::actor>(worker.owner);
    if (!owner) return;
    v1::Request request;
    request.mutable_report()->set_draining_node(worker.description.node());
    request.set_run_key(worker.run_key.bytes());
    caf::anon_send(owner, encode(request));
  }

  void worker_answered(const WorkerAnswered& answered) {
    auto found = workers.find(answered.pid);
    if (found == workers.end() || !found->second.starting.pending()) return;
    Worker& worker = found->second;
    if (!answered.started) {
      worker.starting.deliver(encode_failure(answered.started.error()));
      return;
    }
    worker.description.set_address(answered.started->address());
    v1::Response response;
    *response.mutable_worker_started() = *answered.started;
    worker.starting.deliver(encode(response));
  }

  void worker_exited(const WorkerExited& exited) {
    auto worker = workers.find(exited.pid);
    if (worker == workers.end()) return;
    log_info("launcher", "worker {} of job {} {}", exited.pid, worker->second.description.job(),
             exited.how);
    if (worker->second.starting.pending())
      worker->second.starting.deliver(
          encode_failure(cluster_error(where(), "the worker " + exited.how)));
    for (Promise& promise : worker->second.stopping) promise.deliver(encode_done());
    workers.erase(worker);
  }

  void owner_left(const caf::actor_addr& owner) {
    for (const auto& [pid, worker] : workers)
      if (worker.owner == owner) config.children->terminate(pid, abandoned_grace);
  }
};

caf::behavior launcher_actor(caf::stateful_actor<LauncherState, PublishedActor>* self,
                             LauncherActorConfig config) {
  self->state.config = std::move(config);
  return self->state.make_behavior();
}

}  // namespace

caf::actor spawn_launcher_actor(caf::actor_system& system, LauncherActorConfig config) {
  return system.spawn<caf::detached>(launcher_actor, std::move(config));
}

}  // namespace troupe
