#include "actor/node_actor.hpp"

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

#include "actor/call_node.hpp"
#include "actor/control_codec.hpp"
#include "app/machine.hpp"
#include "app/version.hpp"
#include "transport/endpoint.hpp"
#include "troupe/address.hpp"
#include "troupe/log.hpp"
#include "troupe/messages.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using Clock = std::chrono::steady_clock;
using HelloAnswer = caf::result<ControlBytes, caf::strong_actor_ptr>;

constexpr std::chrono::seconds peer_timeout{10};
constexpr std::chrono::seconds local_timeout{5};

/// Connects to the peers of one join request, one after the other, and answers it. An actor of its
/// own, since connecting blocks.
void join_peers(caf::blocking_actor* self, const NodeActorConfig& config, const v1::Join& join) {
  auto connect_all = [&]() -> Result<void> {
    for (const v1::Join::Peer& peer : join.peers()) {
      TROUPE_ASSIGN(
          auto called,
          call_node(*self, *config.network, "node " + peer.name(), peer.address(),
                    make_hello(config.info.name(), config.job), config.endpoint, peer_timeout));
      caf::anon_send(config.endpoint,
                     AttachPeer{peer.name(), caf::actor_cast<caf::actor>(called.endpoint)});
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
    self->set_exit_handler([this](const caf::exit_msg& exit) { stop(exit.reason); });
    self->send(config.endpoint, Subscribe{caf::actor_cast<caf::actor>(self)});
    return {
        [this](const ControlBytes& bytes, const caf::strong_actor_ptr& peer) -> HelloAnswer {
          auto answer = greet(bytes, peer);
          if (!answer) return {encode_failure(answer.error()), caf::strong_actor_ptr{}};
          return {encode(*answer), caf::actor_cast<caf::strong_actor_ptr>(config.endpoint)};
        },
        [this](const ControlBytes& bytes) -> caf::result<ControlBytes> {
          auto request = decode_request(bytes);
          if (!request) return encode_failure(request.error());
          return serve(bytes, *request);
        },
        [this](const NodeDown& down) { peer_lost(down); },
        [this](const RuntimeFailure& failure) { report(failure.error); },
    };
  }

  std::string where() const { return "node " + config.info.name(); }

  Result<v1::Response> greet(const ControlBytes& bytes, const caf::strong_actor_ptr& peer) {
    TROUPE_ASSIGN(auto request, decode_request(bytes));
    if (!request.has_hello()) return cluster_error(where(), "expected a hello");
    const v1::Hello& hello = request.hello();
    const std::string caller = hello.node().empty() ? "the caller" : "node " + hello.node();
    TROUPE_TRY(check_peer(caller, hello));
    v1::Response response;
    *response.mutable_hello() = config.info;
    if (hello.node().empty()) return response;
    if (hello.job() != config.job)
      return cluster_error(where(),
                           fmt::format("works for job {}, not for {}", config.job, hello.job()));
    if (draining) return cluster_error(where(), "is shutting down");
    if (peer == nullptr) return cluster_error(where(), "a hello without an endpoint");
    if (hello.node() == driver_node) {
      driver = caf::actor_cast<caf::actor>(self->current_sender());
      config.on_driver();
    }
    self->send(config.endpoint, AttachPeer{hello.node(), caf::actor_cast<caf::actor>(peer)});
    return response;
  }

  caf::result<ControlBytes> serve(const ControlBytes& bytes, const v1::Request& request) {
    switch (request.kind_case()) {
      case v1::Request::kJoin: return join(bytes, request.join());
      case v1::Request::kSpawn: return spawn(request.spawn());
      case v1::Request::kGetStatus: return status();
      case v1::Request::kDrain: return drain(request.drain());
      default:
        return encode_failure(cluster_error(where(), "a worker does not serve this request"));
    }
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
    ActorContext context{
        self->system(), config.policy, Mailer(config.info.name(), config.endpoint), address, {}};
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
              promise.deliver(encode(response));
            },
            // The rest of the status is worth having without the links.
            [promise, response](const caf::error&) mutable { promise.deliver(encode(response)); });
    return promise;
  }

  ControlBytes drain(const v1::Drain& drain) {
    if (!std::exchange(draining, true))
      config.on_drain(
          std::chrono::milliseconds(static_cast<std::int64_t>(drain.deadline_seconds() * 1000)));
    return encode_done();
  }

  void hosted_ended(const caf::down_msg& down) {
    for (auto entry = hosted.begin(); entry != hosted.end(); ++entry) {
      if (entry->second.actor.address() != down.source) continue;
      const ActorAddress address{config.info.name(), entry->first};
      Mailer(config.info.name(), config.endpoint).unbind(entry->first);
      hosted.erase(entry);
      if (down.reason && !draining)
        report(
            internal_error(to_string(address), "ended with " + self->system().render(down.reason)));
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
    caf::anon_send(driver, encode(request));
  }

  void stop(const caf::error& reason) {
    draining = true;
    for (const auto& entry : hosted)
      caf::anon_send_exit(entry.second.actor, caf::exit_reason::user_shutdown);
    hosted.clear();
    driver = nullptr;
    self->quit(reason);
  }
};

caf::behavior node_actor(caf::stateful_actor<NodeState>* self, NodeActorConfig config) {
  self->state.config = std::move(config);
  return self->state.make_behavior();
}

}  // namespace

caf::actor spawn_node_actor(caf::actor_system& system, NodeActorConfig config) {
  return system.spawn(node_actor, std::move(config));
}

}  // namespace troupe
