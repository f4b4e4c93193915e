#include "app/driver_actor.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <caf/actor_addr.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include "actor/control_codec.hpp"
#include "transport/endpoint.hpp"
#include "transport/observers.hpp"
#include "troupe/address.hpp"
#include "troupe/guard.hpp"

namespace troupe {
namespace {

using OnFailure = std::function<void(const Error&, const std::string& node)>;

struct DriverState {
  caf::event_based_actor* self;
  OnFailure on_failure;
  std::map<std::uint64_t, ControlCall> pending;
  std::uint64_t next_call = 0;
  std::set<caf::actor_addr> monitored;
  std::set<std::string> lost_nodes;
  RunKey run_key;
  caf::actor_addr endpoint;
  Observers observers;

  explicit DriverState(caf::event_based_actor* self) : self(self) {}

  ~DriverState() {
    for (auto& entry : pending)
      entry.second.promise->set_value(internal_error(entry.second.who, "this process shuts down"));
  }

  caf::behavior make_behavior(const caf::actor& own_endpoint) {
    guard(*self);
    self->set_down_handler([this](const caf::down_msg& down) { actor_ended(down); });
    endpoint = own_endpoint.address();
    self->monitor(own_endpoint);
    self->send(own_endpoint, Subscribe{caf::actor_cast<caf::actor>(self)});
    return {
        [this](const ControlCall& call) { send_request(call); },
        [this](const Observe& observe) { observers.add(*self, observe.observer); },
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
    fail_calls([&](const ControlCall& call) { return call.target.address() == down.source; },
               ErrorCode::cluster, "connection closed");
  }

  void send_request(const ControlCall& call) {
    const std::uint64_t id = next_call++;
    pending.emplace(id, call);
    if (monitored.insert(call.target.address()).second) self->monitor(call.target);
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
    if (!request || !request->has_report() || !run_key.matches(request->run_key())) return;
    const runtime::v1::Report& report = request->report();
    if (report.lost_node().empty())
      runtime_failure(RuntimeFailure{to_error(report.failure())});
    else
      node_down(NodeDown{report.lost_node(), report.failure().what()});
  }

  /// Told by this node's own watcher and by those of the other nodes; the first counts.
  void node_down(const NodeDown& down) {
    if (!lost_nodes.insert(down.node).second) return;
    on_failure(cluster_error("node " + down.node, down.reason), down.node);
    fail_calls([&](const ControlCall& call) { return call.node == down.node; }, ErrorCode::cluster,
               down.reason);
    observers.publish(*self, caf::make_message(down));
  }

  void runtime_failure(const RuntimeFailure& failure) {
    on_failure(failure.error, {});
    observers.publish(*self, caf::make_message(failure));
  }

  void interrupted() {
    fail_calls([](const ControlCall& call) { return !call.survives_interrupt; },
               ErrorCode::interrupted, "interrupted");
    observers.publish(*self, caf::make_message(Interrupted{}));
  }
};

caf::behavior driver_actor(caf::stateful_actor<DriverState>* self, const caf::actor& endpoint,
                           const RunKey& run_key, OnFailure on_failure) {
  self->state.run_key = run_key;
  self->state.on_failure = std::move(on_failure);
  return self->state.make_behavior(endpoint);
}

}  // namespace

caf::actor spawn_driver_actor(caf::actor_system& system, const caf::actor& endpoint,
                              const RunKey& run_key, OnFailure on_failure) {
  return system.spawn(driver_actor, endpoint, run_key, std::move(on_failure));
}

Result<ControlAnswer> call(const caf::actor& driver_actor, ControlCall call) {
  call.promise = std::make_shared<std::promise<Result<ControlAnswer>>>();
  auto answer = call.promise->get_future();
  // Beyond the request's own timeout, in case the actor is gone and nobody keeps the promise.
  const auto longest = call.timeout + std::chrono::seconds(2);
  const std::string who = call.who;
  caf::anon_send(driver_actor, std::move(call));
  if (answer.wait_for(longest) != std::future_status::ready)
    return internal_error(who, "no answer: the driver is shutting down");
  return answer.get();
}

void post(const caf::actor& driver_actor, ControlCall call) {
  call.promise = std::make_shared<std::promise<Result<ControlAnswer>>>();
  caf::anon_send(driver_actor, std::move(call));
}

}  // namespace troupe
