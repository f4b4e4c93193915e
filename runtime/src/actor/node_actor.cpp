#include "actor/node_actor.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/response_promise.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actor/call_node.hpp"
#include "actor/control_codec.hpp"
#include "actor/published_actor.hpp"
#include "actor/version.hpp"
#include "core/resident_memory.hpp"
#include "core/seconds.hpp"
#include "transport/endpoint.hpp"
#include "troupe/address.hpp"
#include "troupe/guard.hpp"
#include "troupe/log.hpp"
#include "troupe/messages.hpp"
#include "troupe/strict_parse.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using Clock = std::chrono::steady_clock;
using HelloAnswer = caf::result<ControlBytes, caf::strong_actor_ptr>;
using HelloPromise = caf::typed_response_promise<ControlBytes, caf::strong_actor_ptr>;

constexpr std::chrono::seconds local_timeout{5};

/// Connects to the peers of one join request, one after the other, and answers it. An actor of its
/// own, since connecting blocks.
void join_peers(caf::blocking_actor* self, const NodeActorConfig& config, const v1::Join& join) {
  const auto deadline =
      Clock::now() + to_milliseconds(join.timeout_seconds(), std::chrono::milliseconds(0));
  auto connect_all = [&]() -> Result<void> {
    for (const v1::Join::Peer& peer : join.peers()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      TROUPE_ASSIGN(
          auto called,
          call_node(*self, *config.network, {"node " + peer.name(), peer.address(), peer.name()},
                    make_hello(config.info.name(), config.run_key), config.endpoint,
                    std::max(left, std::chrono::milliseconds(1))));
      caf::anon_send(config.endpoint, AttachPeer{peer.name(), called.endpoint});
    }
    return {};
  };
  self->receive([&](const ControlBytes&) {
    auto connected = connect_all();
    return connected ? encode_done() : encode_failure(connected.error());
  });
}

struct NodeState {
  struct Hosted {
    std::string factory;
    caf::actor actor;
  };

  caf::event_based_actor* self;
  NodeActorConfig config;
  Clock::time_point started = Clock::now();
  std::map<std::string, Hosted> hosted;
  caf::actor driver;  ///< who said hello as the driver
  bool draining = false;

  explicit NodeState(caf::event_based_actor* self) : self(self) {}

  caf::behavior make_behavior() {
    self->set_down_handler([this](const caf::down_msg& down) { hosted_ended(down); });
    guard(*self);
    self->send(config.endpoint, Subscribe{caf::actor_cast<caf::actor>(self)});
    return {
        [this](const ControlBytes& bytes, const caf::strong_actor_ptr& peer) {
          return greet(bytes, peer);
        },
        [this](const ControlBytes& bytes) -> caf::result<ControlBytes> {
          auto request = decode_request(bytes);
          if (!request) return encode_failure(request.error());
          return serve(bytes, *request);
        },
        [this](const NodeDown& down) { peer_lost(down); },
        [this](const RuntimeFailure& failure) { report(failure.error); },
        [this](EndActor) { stop(); },
    };
  }

  std::string where() const { return "node " + config.info.name(); }

  HelloAnswer greet(const ControlBytes& bytes, const caf::strong_actor_ptr& peer) {
    auto request = decode_request(bytes);
    auto checked = request ? check_hello(*request, peer) : Result<void>(request.error());
    if (!checked) return {encode_failure(checked.error()), caf::strong_actor_ptr{}};
    const std::string caller = request->hello().node();
    // A tool learns who this is, and no more.
    if (caller.empty()) return {introduction(), caf::strong_actor_ptr{}};
    return attach(caller, caf::actor_cast<caf::actor>(peer));
  }

  /// Says nothing of the job to those that do not belong to it.
  Result<void> check_hello(const v1::Request& request, const caf::strong_actor_ptr& peer) const {
    if (!request.has_hello()) return cluster_error(where(), "expected a hello");
    const v1::Hello& hello = request.hello();
    TROUPE_TRY(check_peer(hello.node().empty() ? "the caller" : "node " + hello.node(), hello));
    if (hello.node().empty()) return {};
    if (!config.run_key.matches(request.run_key()))
      return cluster_error(where(), "works for another run",
                           "let the driver connect its nodes; only a job's own nodes may call");
    if (draining) return cluster_error(where(), "is shutting down");
    if (hello.node() == driver_node && driver && self->current_sender() != driver)
      return cluster_error(where(), "has a driver");
    if (hello.node() != driver_node && config.nodes.count(hello.node()) == 0)
      return cluster_error(where(), "its job has no node " + hello.node());
    if (peer == nullptr) return cluster_error(where(), "a hello without an endpoint");
    return {};
  }

  ControlBytes introduction() const {
    v1::Response response;
    *response.mutable_hello() = config.info;
    return encode(response);
  }

  /// Answers when the endpoint has taken the peer, which it does not while it has another of that
  /// name.
  HelloAnswer attach(const std::string& caller, const caf::actor& peer) {
    // Before the promise, which takes the sender out of the message.
    const auto sender = caf::actor_cast<caf::actor>(self->current_sender());
    auto promise = self->make_response_promise<ControlBytes, caf::strong_actor_ptr>();
    self->request(config.endpoint, local_timeout, AttachPeer{caller, peer})
        .then(
            [=](bool attached) mutable {
              if (!attached) return refuse(promise, "has a live connection to node " + caller);
              if (caller == driver_node) take_driver(sender);
              promise.deliver(introduction(),
                              caf::actor_cast<caf::strong_actor_ptr>(config.endpoint));
            },
            [=](const caf::error& error) mutable {
              refuse(promise, "its endpoint does not answer: " + self->system().render(error));
            });
    return promise;
  }

  void refuse(HelloPromise& promise, const std::string& why) const {
    promise.deliver(encode_failure(cluster_error(where(), why)), caf::strong_actor_ptr{});
  }

  void take_driver(const caf::actor& sender) {
    driver = sender;
    config.on_driver();
  }

  caf::result<ControlBytes> serve(const ControlBytes& bytes, const v1::Request& request) {
    if (request.has_get_status()) return status();
    if (!is_from_driver(request))
      return encode_failure(cluster_error(where(), "takes orders from the driver of its run only"));
    switch (request.kind_case()) {
      case v1::Request::kJoin: return join(bytes, request.join());
      case v1::Request::kSpawn: return spawn(request.spawn());
      case v1::Request::kDrain: return drain(request.drain());
      default:
        return encode_failure(cluster_error(where(), "a worker does not serve this request"));
    }
  }

  bool is_from_driver(const v1::Request& request) const {
    return driver && self->current_sender() == driver && config.run_key.matches(request.run_key());
  }

  caf::result<ControlBytes> join(const ControlBytes& bytes, const v1::Join& join) {
    self->delegate(self->spawn(join_peers, config, join), bytes);
    return caf::delegated<ControlBytes>{};
  }

  ControlBytes spawn(const v1::Spawn& spawn) {
    auto created = create(spawn);
    if (!created) return encode_failure(created.error());
    self->monitor(*created);
    Mailer(config.info.name(), config.endpoint).bind(spawn.name(), *created);
    hosted[spawn.name()] = {spawn.factory(), *created};
    return encode_done();
  }

  Result<caf::actor> create(const v1::Spawn& spawn) {
    const ActorAddress address{config.info.name(), spawn.name()};
    if (draining) return cluster_error(where(), "is shutting down");
    if (hosted.count(spawn.name()) != 0)
      return internal_error(to_string(address), "there is an actor of this name already");
    if (!spawn.config().type_url().empty())
      TROUPE_TRY(config.plugins->load_for_type(spawn.config().type_url()));
    // Its type may not have been known when the request was parsed.
    if (has_unknown_fields(spawn.config()))
      return cluster_error(to_string(address), "a config with unknown fields",
                           "install the same version of Troupe on every machine");
    ActorContext context{self->system(),
                         config.policy,
                         Mailer(config.info.name(), config.endpoint),
                         address,
                         {},
                         {}};
    // A factory belongs to a plugin; what it throws must not end this node.
    try {
      return config.plugins->create_actor(spawn.factory(), context, spawn.config());
    } catch (const std::exception& exception) {
      return internal_error(to_string(address), exception.what());
    }
  }

  caf::result<ControlBytes> status() {
    v1::Response response;
    v1::Status& status = *response.mutable_status();
    status.set_name(config.info.name());
    status.set_version(version());
    status.set_uptime_seconds(std::chrono::duration<double>(Clock::now() - started).count());
    status.set_resident_bytes(resident_bytes());
    status.set_draining(draining);
    for (const auto& [name, actor] : hosted) {
      auto* entry = status.add_hosted();
      entry->set_name(name);
      entry->set_factory(actor.factory);
    }
    auto promise = self->make_response_promise<ControlBytes>();
    self->request(config.endpoint, local_timeout, GetLinkStatus{})
        .then(
            [promise, response](const LinkStatusList& list) mutable {
              for (const auto& link : list.links) *response.mutable_status()->add_links() = link;
              response.mutable_status()->set_refused_frames(list.refused_frames);
              promise.deliver(encode(response));
            },
            // The rest of the status is worth having without the links.
            [promise, response](const caf::error&) mutable { promise.deliver(encode(response)); });
    return promise;
  }

  ControlBytes drain(const v1::Drain& drain) {
    if (!std::exchange(draining, true))
      config.on_drain(to_milliseconds(drain.deadline_seconds(), std::chrono::milliseconds(0)));
    return encode_done();
  }

  /// The endpoint watches it too, and tells when it ended with an error.
  void hosted_ended(const caf::down_msg& down) {
    for (auto entry = hosted.begin(); entry != hosted.end(); ++entry) {
      if (entry->second.actor.address() != down.source) continue;
      hosted.erase(entry);
      return;
    }
  }

  void peer_lost(const NodeDown& down) {
    if (draining) return;
    if (down.node == driver_node) {
      draining = true;
      config.on_driver_lost(down.reason);
    } else {
      const std::string what = fmt::format("lost by node {}: {}", config.info.name(), down.reason);
      report(cluster_error("node " + down.node, what), down.node);
    }
  }

  /// The driver prints it; here it is only noted.
  void report(const Error& error, const std::string& lost_node = {}) {
    log_info("node", "{}", error.to_string());
    if (!driver) return;
    v1::Request request;
    *request.mutable_report()->mutable_failure() = to_failure(error);
    request.mutable_report()->set_lost_node(lost_node);
    request.set_run_key(config.run_key.bytes());
    caf::anon_send(driver, encode(request));
  }

  void stop() {
    draining = true;
    for (const auto& entry : hosted)
      caf::anon_send_exit(entry.second.actor, caf::exit_reason::user_shutdown);
    hosted.clear();
    driver = nullptr;
    self->quit(caf::exit_reason::user_shutdown);
  }
};

caf::behavior node_actor(caf::stateful_actor<NodeState, PublishedActor>* self,
                         NodeActorConfig config) {
  self->state.config = std::move(config);
  return self->state.make_behavior();
}

}  // namespace

caf::actor spawn_node_actor(caf::actor_system& system, NodeActorConfig config) {
  return system.spawn(node_actor, std::move(config));
}

}  // namespace troupe
