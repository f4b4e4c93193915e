#include "troupe/session.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actor/call_node.hpp"
#include "actor/control_codec.hpp"
#include "app/application.hpp"
#include "app/child_processes.hpp"
#include "app/driver_actor.hpp"
#include "app/event_log.hpp"
#include "app/machine.hpp"
#include "app/output_directory.hpp"
#include "app/paths.hpp"
#include "app/session_node.hpp"
#include "app/signals.hpp"
#include "app/terminal_console.hpp"
#include "app/watchdog.hpp"
#include "app/worker_start.hpp"
#include "app/worker_stop.hpp"
#include "config/loader.hpp"
#include "config/rules.hpp"
#include "core/host_port.hpp"
#include "core/run_key.hpp"
#include "core/seconds.hpp"
#include "transport/basp_transport.hpp"
#include "transport/endpoint.hpp"
#include "troupe/log.hpp"

// Opening a session, in this order:
//   1. the driver's endpoint and driver actor, so that failures are seen from the start;
//   2. a worker for each node: forked here, or by the launcher at the node's address, which is
//      watched from then on;
//   3. driver -> worker: connect, hello, attach (the hello makes the worker attach the driver);
//   4. worker -> worker: each pair once, so that no traffic is relayed by the driver.
// A step that fails leaves what was started to the destructor, which ends it all.

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using Clock = std::chrono::steady_clock;
using Node = SessionNode;
using std::chrono::milliseconds;

constexpr milliseconds default_connect_timeout{20000};
/// A launcher is either there or it is not; waiting the whole time for it helps no one.
constexpr milliseconds launcher_connect_timeout{3000};
/// A worker listens before its address is known.
constexpr milliseconds worker_connect_timeout{5000};
/// How long workers may take to finish when the job is over.
constexpr milliseconds drain_time{3000};
/// How long launchers may take to say that they have killed their workers.
constexpr milliseconds kill_time{1000};
constexpr milliseconds shutdown_limit{10000};

Environment to_environment(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

/// The rules of job files, for a job that may come from a C++ program, which needs no plugin.
Result<void> check_job(v1::Job job) {
  job.mutable_plugin();
  const auto locate = [where = "job " + job.name()](const std::string&) { return where; };
  TROUPE_TRY(validate(job, locate));
  return check_rules(job, locate);
}

std::filesystem::path out_path(const v1::Job& job, const SessionOptions& options) {
  return options.out_directory.empty() ? std::filesystem::path("runs") / job.name()
                                       : options.out_directory;
}

class Session final : public JobSession {
 public:
  Session(const v1::Job& job, const SessionOptions& options)
      : job_(job),
        options_(options),
        console_(make_console(options.json)),
        output_(out_path(job, options)),
        deadline_(Clock::now() + connect_timeout()) {}

  ~Session() override { close(); }

  Result<void> connect(
      const std::function<Result<WorkerRequirements>(const std::string& node)>& requirements) {
    TROUPE_TRY(check_job(job_));
    TROUPE_TRY(output_.check());
    TROUPE_ASSIGN(run_key_, RunKey::random());
    for (const v1::JobNode& node : job_.nodes())
      nodes_.push_back({node.name(), node.address(), {}, 0, {}, {}});
    start_driver();
    auto connected = connect_nodes(requirements);
    return connected ? connected : finish(std::move(connected));
  }

  const v1::Job& job() const override { return job_; }
  const SessionOptions& options() const override { return options_; }
  caf::actor_system& system() override { return application_->system(); }
  ExecutionPolicy policy() const override { return ExecutionPolicy::detached; }
  const Mailer& mailer() const override { return mailer_; }
  const std::vector<v1::NodeInfo>& nodes() const override { return infos_; }

  Result<void> spawn(const ActorAddress& address, const std::string& factory,
                     const google::protobuf::Message& config, milliseconds timeout) override {
    Node* node = find(address.node);
    if (node == nullptr)
      return bad_input("node " + address.node, "the job has no such node", "declare it in `nodes`");
    v1::Request request;
    request.mutable_spawn()->set_name(address.actor);
    request.mutable_spawn()->set_factory(factory);
    request.mutable_spawn()->mutable_config()->PackFrom(config);
    TROUPE_TRY(ask(*node, std::move(request), timeout));
    return {};
  }

  void subscribe(const caf::actor& observer) override {
    caf::anon_send(driver_, Observe{observer});
  }

  Result<std::filesystem::path> out_directory(const OutputFiles& files) override {
    std::lock_guard<std::mutex> lock(output_mutex_);
    if (std::exchange(output_taken_, true)) return output_.path();
    const char* events = "events.jsonl";
    OutputFiles all = files;
    all.results.emplace_back(events);
    auto taken = output_.take(all);
    output_taken_ = taken.ok();
    if (!taken) return std::move(taken).error();
    events_.open(output_.path() / events);
    return output_.path();
  }

  Console& console() override { return *console_; }
  void record_event(const std::string& json) override { events_.append(json); }

  Result<void> finish(Result<void> outcome) override {
    outcome = blame_draining_node(std::move(outcome));
    const int code = outcome ? 0 : exit_code(outcome.error().code);
    exit_code_ = code;
    JsonObject event = new_event("finished").add("exit_code", static_cast<std::uint64_t>(code));
    if (!outcome) event.add("error", outcome.error().to_string());
    events_.append(event);
    return outcome;
  }

 private:
  milliseconds connect_timeout() const {
    return to_milliseconds(job_.connect_timeout_seconds(), default_connect_timeout);
  }

  milliseconds time_left() const {
    return std::max(std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()),
                    milliseconds(1));
  }

  Node* find(const std::string& name) {
    for (Node& node : nodes_)
      if (node.name == name) return &node;
    return nullptr;
  }

  Result<void> connect_nodes(
      const std::function<Result<WorkerRequirements>(const std::string& node)>& requirements) {
    TROUPE_TRY(start_workers(requirements));
    TROUPE_TRY(greet_workers());
    TROUPE_TRY(join_workers());
    events_.append(new_event("connected").add("job", job_.name()));
    return {};
  }

  void start_driver() {
    blocked_signals_.emplace();
    children_ = std::make_unique<ChildProcesses>();
    application_ = std::make_unique<Application>();
    EndpointConfig config;
    config.node = driver_node;
    config.limits = job_.links();
    config.heartbeat = job_.heartbeat();
    config.transport = std::make_shared<BaspTransport>();
    config.run_key = run_key_;
    endpoint_ = spawn_endpoint(application_->system(), config);
    mailer_ = Mailer(driver_node, endpoint_);
    DriverActorConfig driver;
    driver.endpoint = endpoint_;
    driver.run_key = run_key_;
    driver.heartbeat = job_.heartbeat();
    driver.on_failure = [this](const Error& error, const std::string& node) {
      note_failure(error, node);
    };
    driver.on_draining = [this](const std::string& node) { note_draining(node); };
    driver_ = spawn_driver_actor(application_->system(), std::move(driver));
    signals_ = std::make_unique<SignalWatcher>([this](int signal) { interrupt(signal); });
  }

  // --- Signals and failures, on other threads -----------------------------------------------

  void interrupt(int signal) {
    if (interrupted_.exchange(true)) {
      // The user insists. Nothing is waited for: the end of this process ends the workers.
      children_->kill_all();
      events_.append(new_event("finished").add("exit_code", std::uint64_t{130}));
      _exit(130);
    }
    log_info("driver", "{}: stopping; once more to stop at once", strsignal(signal));
    events_.append(new_event("interrupted").add("signal", strsignal(signal)));
    caf::anon_send(driver_, Interrupted{});
    // With the lock, so that no waiter misses it between its check and its wait.
    std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  void note_failure(const Error& error, const std::string& node) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return;
    failed_ = true;
    JsonObject event = new_event(node.empty() ? "failure" : "node_lost");
    if (!node.empty()) event.add("node", node);
    events_.append(event.add("error", error.to_string()));
  }

  void note_draining(const std::string& node) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return;
    draining_node_ = node;
    log_info("driver", "the launcher of node {} drains: stopping", node);
    events_.append(new_event("node_drains").add("node", node));
    changed_.notify_all();
  }

  void worker_exited(const std::string& node, pid_t pid, const std::string& how) {
    log_debug("driver", "worker {} of node {} {}", pid, node, how);
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return;
    events_.append(new_event("worker_exited").add("node", node).add("how", how));
  }

  /// With the lock.
  bool stopping() const { return interrupted_ || !draining_node_.empty(); }

  Result<void> check_interrupt() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping()) return Error{ErrorCode::interrupted, "job " + job_.name(), "interrupted", {}};
    return {};
  }

  /// Who interrupted the job decides what its end means: a node that leaves is a loss, if an
  /// orderly one; what the job has saved is in its own hint.
  Result<void> blame_draining_node(Result<void> outcome) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (outcome || outcome.error().code != ErrorCode::interrupted || interrupted_ ||
        draining_node_.empty())
      return outcome;
    const Error& error = outcome.error();
    return cluster_error("node " + draining_node_,
                         "its launcher drains: the job has stopped (" + error.where + ")",
                         error.hint);
  }

  // --- Control requests ---------------------------------------------------------------------

  ControlCall call_to(const Node& node, v1::Request request, milliseconds timeout) const {
    ControlCall control;
    control.who = node.who();
    control.node = node.name;
    control.target = node.control;
    control.request = std::move(request);
    control.request.set_run_key(run_key_.bytes());
    control.timeout = timeout;
    return control;
  }

  Result<ControlAnswer> ask(const Node& node, v1::Request request, milliseconds timeout) {
    return call(driver_, call_to(node, std::move(request), timeout));
  }

  Result<ControlAnswer> ask_launcher(const Node& node, v1::Request request, milliseconds timeout) {
    ControlCall control;
    control.who = node.who() + " at " + node.launcher_address;
    control.target = node.launcher;
    control.request = std::move(request);
    control.request.set_run_key(run_key_.bytes());
    control.timeout = timeout;
    return call(driver_, std::move(control));
  }

  /// Connects to a node actor and says hello to it through the driver actor, so that what the
  /// other side sees as the caller lives as long as the session.
  Result<CalledNode> greet(const Callee& callee, const v1::Request& hello,
                           const caf::actor& endpoint, milliseconds timeout) {
    TROUPE_TRY(check_interrupt());
    TROUPE_ASSIGN(const caf::actor target, connect_to(application_->network(), callee, timeout));
    ControlCall control;
    control.who = to_string(callee);
    control.node = callee.node;
    control.target = target;
    control.request = hello;
    control.endpoint = endpoint;
    control.timeout = timeout;
    TROUPE_ASSIGN(auto answer, call(driver_, std::move(control)));
    return check_answer(callee, target, answer.response, answer.endpoint);
  }

  // --- Step 2: workers ----------------------------------------------------------------------

  Result<void> start_workers(
      const std::function<Result<WorkerRequirements>(const std::string& node)>& requirements) {
    for (Node& node : nodes_) {
      TROUPE_TRY(check_interrupt());
      TROUPE_ASSIGN(WorkerRequirements wanted, requirements(node.name));
      const v1::JobNode& declared = job_.nodes(static_cast<int>(&node - nodes_.data()));
      const Environment of_job = to_environment(declared.environment());
      if (node.local()) {
        TROUPE_TRY(fork_worker(node, wanted.environment, of_job));
      } else {
        TROUPE_TRY(request_worker(node, wanted.environment, of_job));
      }
    }
    return await_local_workers();
  }

  v1::WorkerSpec worker_spec(const Node& node) const {
    v1::WorkerSpec spec;
    spec.set_job(job_.name());
    spec.set_node(node.name);
    spec.set_host("127.0.0.1");
    spec.set_run_key(run_key_.bytes());
    for (const v1::JobNode& declared : job_.nodes()) spec.add_nodes(declared.name());
    *spec.mutable_heartbeat() = job_.heartbeat();
    *spec.mutable_links() = job_.links();
    if (!job_.plugin().type_url().empty()) spec.add_plugins(job_.plugin().type_url());
    const auto binary = worker_binary(options_.worker_binary);
    for (const auto& directory : plugin_directories(options_.plugin_directories, binary))
      spec.add_plugin_directories(std::filesystem::absolute(directory).string());
    spec.set_connect_timeout_seconds(connect_seconds());
    spec.set_drain_seconds(std::chrono::duration<double>(drain_time).count());
    return spec;
  }

  double connect_seconds() const {
    return std::chrono::duration<double>(connect_timeout()).count();
  }

  Result<void> fork_worker(Node& node, const Environment& wanted, const Environment& of_job) {
    auto environment = worker_environment(current_environment(), {wanted, of_job}, machine_);
    TROUPE_ASSIGN(node.pid, start_worker(
                                *children_, worker_binary(options_.worker_binary),
                                worker_spec(node), std::move(environment),
                                [this, name = node.name](pid_t, Result<v1::WorkerStarted> started) {
                                  {
                                    std::lock_guard<std::mutex> lock(mutex_);
                                    ready_.emplace(name, std::move(started));
                                  }
                                  changed_.notify_all();
                                },
                                [this, name = node.name](pid_t pid, const std::string& how) {
                                  worker_exited(name, pid, how);
                                }));
    return {};
  }

  Result<void> request_worker(Node& node, const Environment& wanted, const Environment& of_job) {
    TROUPE_ASSIGN(const CalledNode called,
                  greet({node.who(), node.launcher_address, {}}, make_tool_hello(), nullptr,
                        std::min(time_left(), launcher_connect_timeout)));
    node.launcher = called.control;
    caf::anon_send(driver_, WatchLauncher{node.launcher, node.launcher_address, node.name});
    v1::Request request;
    v1::StartWorker& start = *request.mutable_start_worker();
    start.set_job(job_.name());
    start.set_node(node.name);
    for (const v1::JobNode& declared : job_.nodes()) start.add_nodes(declared.name());
    for (const Environment& layer : {wanted, of_job})
      for (const auto& [name, value] : layer) (*start.mutable_environment())[name] = value;
    *start.mutable_heartbeat() = job_.heartbeat();
    *start.mutable_links() = job_.links();
    if (!job_.plugin().type_url().empty()) start.add_plugins(job_.plugin().type_url());
    start.set_connect_timeout_seconds(connect_seconds());
    TROUPE_ASSIGN(auto answer, ask_launcher(node, std::move(request), time_left()));
    if (!answer.response.has_worker_started())
      return cluster_error(node.who(), "wrong answer to a request for a worker");
    node.pid = static_cast<pid_t>(answer.response.worker_started().pid());
    // The launcher may listen on all interfaces; its host as this machine knows it is what counts.
    TROUPE_ASSIGN(const HostPort launcher, parse_address(node.launcher_address));
    TROUPE_ASSIGN(const HostPort worker, parse_address(answer.response.worker_started().address()));
    node.address = to_string(HostPort{launcher.host, worker.port});
    return {};
  }

  Result<void> await_local_workers() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (Node& node : nodes_) {
      if (!node.local()) continue;
      const bool in_time = changed_.wait_until(
          lock, deadline_, [&] { return stopping() || ready_.count(node.name) != 0; });
      if (stopping()) return Error{ErrorCode::interrupted, node.who(), "interrupted", {}};
      if (!in_time)
        return cluster_error(node.who(), "its worker did not start in time",
                             "raise connect_timeout_seconds");
      const auto& started = ready_.at(node.name);
      if (!started) return started.error();
      node.address = started->address();
    }
    return {};
  }

  // --- Steps 3 and 4: connections -----------------------------------------------------------

  Result<void> greet_workers() {
    const v1::Request hello = make_hello(driver_node, run_key_);
    for (Node& node : nodes_) {
      TROUPE_ASSIGN(CalledNode called,
                    greet({node.who(), node.address, node.name}, hello, endpoint_,
                          std::min(time_left(), worker_connect_timeout)));
      node.control = std::move(called.control);
      caf::anon_send(endpoint_, AttachPeer{node.name, std::move(called.endpoint)});
      infos_.push_back(std::move(called.info));
    }
    return {};
  }

  /// Whether `a` connects to `b`: the lower name does, unless only the other one can.
  static bool dials(const Node& a, const Node& b) {
    auto loopback = [](const Node& node) {
      auto parsed = parse_address(node.address);
      return parsed && is_loopback(parsed->host);
    };
    if (loopback(a) != loopback(b)) return loopback(a);
    return a.name < b.name;
  }

  Result<void> join_workers() {
    for (Node& node : nodes_) {
      v1::Request request;
      for (const Node& peer : nodes_) {
        if (peer.name == node.name || !dials(node, peer)) continue;
        auto* entry = request.mutable_join()->add_peers();
        entry->set_name(peer.name);
        entry->set_address(peer.address);
      }
      if (!request.has_join()) continue;
      request.mutable_join()->set_timeout_seconds(
          std::chrono::duration<double>(time_left()).count());
      TROUPE_TRY(ask(node, std::move(request), time_left()));
    }
    return {};
  }

  // --- The end ------------------------------------------------------------------------------

  /// Ends all workers and this process's actors. After a failure the work is void and nothing is
  /// waited for; otherwise workers finish within `drain_time`.
  void close() {
    if (!application_) return;
    Watchdog watchdog(shutdown_limit, exit_code_, [this] { children_->kill_all(); });
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
    }
    if (!failed_) {
      drain_workers(driver_, endpoint_, nodes_, run_key_, drain_time);
      children_->wait_all(drain_time);
    }
    children_->kill_all();
    stop_remote_workers(driver_, nodes_, run_key_, failed_, failed_ ? kill_time : drain_time);
    children_->wait_all(drain_time);
    signals_.reset();
    caf::anon_send_exit(driver_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(endpoint_, caf::exit_reason::user_shutdown);
    for (Node& node : nodes_) node.control = node.launcher = nullptr;
    mailer_ = Mailer();
    driver_ = endpoint_ = nullptr;
    application_.reset();
    children_.reset();
    blocked_signals_.reset();
  }

  const v1::Job job_;
  const SessionOptions options_;
  const Machine machine_ = read_machine();
  std::unique_ptr<Console> console_;
  OutputDirectory output_;
  EventLog events_;
  const Clock::time_point deadline_;  ///< for connecting

  std::optional<BlockedSignals> blocked_signals_;
  std::unique_ptr<ChildProcesses> children_;
  std::unique_ptr<Application> application_;
  std::unique_ptr<SignalWatcher> signals_;
  caf::actor endpoint_;
  caf::actor driver_;
  RunKey run_key_;
  Mailer mailer_;
  std::vector<Node> nodes_;  ///< in the order of the job; fixed before anything starts
  std::vector<v1::NodeInfo> infos_;

  std::mutex output_mutex_;
  bool output_taken_ = false;  ///< guarded by output_mutex_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Result<v1::WorkerStarted>> ready_;  ///< guarded by mutex_
  bool closing_ = false;                                    ///< guarded by mutex_
  std::string draining_node_;                               ///< guarded by mutex_
  /// Of a shutdown that takes too long; as long as no outcome is known, that is a defect.
  int exit_code_ = exit_code(ErrorCode::internal);
  std::atomic<bool> failed_{false};
  std::atomic<bool> interrupted_{false};
};

}  // namespace

JobSession::~JobSession() = default;

Result<std::unique_ptr<JobSession>> JobSession::open(
    const v1::Job& job, const SessionOptions& options,
    const std::function<Result<WorkerRequirements>(const std::string& node)>& requirements) {
  auto session = std::make_unique<Session>(job, options);
  TROUPE_TRY(session->connect(requirements));
  return std::unique_ptr<JobSession>(std::move(session));
}

}  // namespace troupe
