#include "app/driver_actor.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <caf/actor_addr.hpp>
#include <caf/actor_clock.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include "actor/control_codec.hpp"
#include "app/launcher_watch.hpp"
#include "transport/endpoint.hpp"
#include "transport/observers.hpp"
#include "troupe/address.hpp"
#include "troupe/guard.hpp"

namespace troupe {
namespace {

/// To itself: time to ask the launchers.
struct LauncherTick {};

}  // namespace
}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::LauncherTick)

namespace troupe {
namespace {

std::chrono::nanoseconds duration_of(double seconds, double otherwise) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds > 0 ? seconds : otherwise));
}

struct DriverState {
  caf::event_based_actor* self;
  DriverActorConfig config;
  std::chrono::nanoseconds interval{};
  std::chrono::nanoseconds timeout{};
  LauncherWatch launchers{{}, {}};
  std::map<caf::actor_addr, std::string> launcher_addresses;
  std::optional<std::chrono::nanoseconds> last_tick;
  std::set<std::string> draining_nodes;
  std::map<std::uint64_t, ControlCall> pending;
  std::uint64_t next_call = 0;
  std::set<caf::actor_addr> monitored;
  std::set<std::string> lost_nodes;
  caf::actor_addr endpoint;
  Observers observers;

  explicit DriverState(caf::event_based_actor* self) : self(self) {}

  ~DriverState() {
    for (auto& entry : pending)
      entry.second.promise->set_value(internal_error(entry.second.who, "this process shuts down"));
  }

  caf::behavior make_behavior(DriverActorConfig settings) {
    guard(*self);
    config = std::move(settings);
    interval = duration_of(config.heartbeat.interval_seconds(), 0.5);
    timeout = duration_of(config.heartbeat.timeout_seconds(), 3);
    launchers = LauncherWatch(interval, timeout);
    self->set_down_handler([this](const caf::down_msg& down) { actor_ended(down); });
    endpoint = config.endpoint.address();
    self->monitor(config.endpoint);
    self->send(config.endpoint, Subscribe{caf::actor_cast<caf::actor>(self)});
    // The handle is not needed any more, and would keep the endpoint of a closed session alive.
    config.endpoint = nullptr;
    return {
        [this](const ControlCall& call) { send_request(call); },
        [this](const Observe& observe) { observers.add(*self, observe.observer); },
        [this](const WatchLauncher& watch) { watch_launcher(watch); },
        [this](LauncherTick) { launcher_tick(); },
        [this](const ControlBytes& bytes) { receive_report(bytes); },
        [this](const NodeDown& down) { node_down(down); },
        [this](const RuntimeFailure& failure) { runtime_failure(failure); },
        [this](Interrupted) { interrupted(); },
    };
  }

  void actor_ended(const caf::down_msg& down) {
    if (observers.forget(down.source)) return;
    if (down.source == endpoint)
      return runtime_failure(RuntimeFailure{
          internal_error(driver_node, "its endpoint died: " + self->system().render(down.reason))});
    monitored.erase(down.source);
    target_lost(down.source, "connection closed");
  }

  void send_request(const ControlCall& call) {
    const std::uint64_t id = next_call++;
    pending.emplace(id, call);
    monitor_once(call.target);
    auto on_error = [this, id](const caf::error& error) {
      if (auto call = take(id))
        call->promise->set_value(
            cluster_error(call->who, "no answer: " + self->system().render(error)));
    };
    auto deliver = [this, id](const ControlBytes& bytes, caf::strong_actor_ptr endpoint) {
      auto call = take(id);
      if (!call) return;
      auto response = decode_response(bytes);
      if (response)
        call->promise->set_value(ControlAnswer{std::move(*response), std::move(endpoint)});
      else
        call->promise->set_value(std::move(response).error());
    };
    if (call.request.has_hello())
      self->request(call.target, call.timeout, encode(call.request),
                    caf::actor_cast<caf::strong_actor_ptr>(call.endpoint))
          .then(deliver, on_error);
    else
      self->request(call.target, call.timeout, encode(call.request))
          .then([deliver](const ControlBytes& bytes) { deliver(bytes, nullptr); }, on_error);
  }

  std::optional<ControlCall> take(std::uint64_t id) {
    auto found = pending.find(id);
    if (found == pending.end()) return std::nullopt;  // ended by something else meanwhile
    ControlCall call = std::move(found->second);
    pending.erase(found);
    return call;
  }

  // --- Launchers ----------------------------------------------------------------------------

  void watch_launcher(const WatchLauncher& watch) {
    monitor_once(watch.launcher);
    launchers.add(watch.launcher, watch.node);
    launcher_addresses[watch.launcher.address()] = watch.address;
    if (last_tick) return;
    last_tick = now();
    self->delayed_send(self, interval, LauncherTick{});
  }

  void launcher_tick() {
    self->delayed_send(self, interval, LauncherTick{});
    const auto elapsed = now() - *std::exchange(last_tick, now());
    const std::chrono::duration<double> limit = timeout;
    for (const caf::actor& silent : launchers.on_tick(elapsed))
      target_lost(silent.address(), fmt::format("no sign of life for {:.1f} s", limit.count()));
    runtime::v1::Request ping;
    ping.mutable_ping();
    const ControlBytes bytes = encode(ping);
    for (const caf::actor& launcher : launchers.launchers())
      self->request(launcher, timeout, bytes)
          .then([this, launcher](const ControlBytes&) { launchers.on_answer(launcher); },
                [](const caf::error&) {});  // silence is what is counted
  }

  std::chrono::nanoseconds now() const { return self->clock().now().time_since_epoch(); }

  void target_lost(const caf::actor_addr& target, const std::string& reason) {
    fail_calls([&](const ControlCall& call) { return call.target.address() == target; },
               ErrorCode::cluster, reason);
    for (const std::string& node : launchers.remove(target))
      node_down(NodeDown{
          node, fmt::format("its launcher at {}: {}", launcher_addresses[target], reason)});
  }

  // --- Calls --------------------------------------------------------------------------------

  void monitor_once(const caf::actor& target) {
    if (monitored.insert(target.address()).second) self->monitor(target);
  }

  template <class Predicate>
  void fail_calls(Predicate matches, ErrorCode code, const std::string& what) {
    for (auto entry = pending.begin(); entry != pending.end();) {
      if (!matches(entry->second)) {
        ++entry;
        continue;
      }
      entry->second.promise->set_value(Error{code, entry->second.who, what, {}});
      entry = pending.erase(entry);
    }
  }

  void receive_report(const ControlBytes& bytes) {
    auto request = decode_request(bytes);
    if (!request || !request->has_report() || !config.run_key.matches(request->run_key())) return;
    const runtime::v1::Report& report = request->report();
    if (!report.draining_node().empty())
      node_drains(report.draining_node());
    else if (report.lost_node().empty())
      runtime_failure(RuntimeFailure{to_error(report.failure())});
    else
      node_down(NodeDown{report.lost_node(), report.failure().what()});
  }

  void node_drains(const std::string& node) {
    if (!draining_nodes.insert(node).second) return;
    config.on_draining(node);
    interrupted();
  }

  /// Told by this node's own watcher and by those of the other nodes; the first counts.
  void node_down(const NodeDown& down) {
    if (!lost_nodes.insert(down.node).second) return;
    config.on_failure(cluster_error("node " + down.node, down.reason), down.node);
    fail_calls([&](const ControlCall& call) { return call.node == down.node; }, ErrorCode::cluster,
               down.reason);
    observers.publish(*self, caf::make_message(down));
  }

  void runtime_failure(const RuntimeFailure& failure) {
    config.on_failure(failure.error, {});
    observers.publish(*self, caf::make_message(failure));
  }

  void interrupted() {
    fail_calls([](const ControlCall& call) { return !call.survives_interrupt; },
               ErrorCode::interrupted, "interrupted");
    observers.publish(*self, caf::make_message(Interrupted{}));
  }
};

}  // namespace

caf::actor spawn_driver_actor(caf::actor_system& system, DriverActorConfig config) {
  const auto behavior = [](caf::stateful_actor<DriverState>* self, DriverActorConfig settings) {
    return self->state.make_behavior(std::move(settings));
  };
  return system.spawn(behavior, std::move(config));
}

std::future<Result<ControlAnswer>> start_call(const caf::actor& driver_actor, ControlCall call) {
  call.promise = std::make_shared<std::promise<Result<ControlAnswer>>>();
  auto answer = call.promise->get_future();
  caf::anon_send(driver_actor, std::move(call));
  return answer;
}

Result<ControlAnswer> call(const caf::actor& driver_actor, ControlCall call) {
  // Beyond the request's own timeout, which the actor watches.
  const auto longest = call.timeout + std::chrono::seconds(2);
  const Error gone = internal_error(call.who, "no answer: the driver is shutting down");
  auto answer = start_call(driver_actor, std::move(call));
  if (answer.wait_for(longest) != std::future_status::ready) return gone;
  try {
    return answer.get();
  } catch (const std::future_error&) {
    return gone;  // the actor had ended: the call was dropped with its promise
  }
}

void post(const caf::actor& driver_actor, ControlCall call) {
  call.promise = std::make_shared<std::promise<Result<ControlAnswer>>>();
  caf::anon_send(driver_actor, std::move(call));
}

}  // namespace troupe
