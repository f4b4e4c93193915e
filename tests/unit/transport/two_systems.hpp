#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "transport/basp_limits.hpp"
#include "transport/basp_transport.hpp"
#include "transport/endpoint.hpp"
#include "troupe/mailer.hpp"
#include "troupe/messages.hpp"

namespace troupe::testing {

/// Long enough for the slowest machine; no test waits for it to pass.
inline constexpr std::chrono::minutes patience{5};

/// What actors of a real actor system hand to the thread of the test.
template <class T>
class Mailslot {
 public:
  void put(T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }

  /// All values, once there are `count` of them; fewer when patience is at its end.
  std::vector<T> wait_for(std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return values_.size() >= count; });
    return values_;
  }

  std::size_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

/// A node with a real network, as an Application makes it.
class RealNode {
 public:
  explicit RealNode(const std::string& name, std::size_t max_frame_bytes = default_max_frame_bytes)
      : system_(configured(config_)) {
    close_default_servers(system_);
    network = std::make_unique<BaspNetwork>(system_, max_frame_bytes);
    EndpointConfig config;
    config.node = name;
    config.transport = std::make_shared<BaspTransport>();
    // Tests share a busy machine.
    config.heartbeat.set_timeout_seconds(300);
    endpoint = spawn_endpoint(system_, std::move(config));
    mailer = Mailer(name, endpoint);
    const auto observer = [this](caf::event_based_actor*) {
      return caf::behavior{
          [this](const NodeDown& event) {
            down.put(event);
            happened.put(false);
          },
          [this](const RuntimeFailure& event) { failures.put(event.error); },
      };
    };
    actors_.push_back(system_.spawn(observer));
    caf::anon_send(endpoint, Subscribe{actors_.back()});
  }

  ~RealNode() {
    network.reset();
    for (const auto& actor : actors_) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(endpoint, caf::exit_reason::user_shutdown);
  }

  caf::actor_system& system() { return system_; }

  /// Binds an actor that puts its deliveries into `deliveries`.
  void bind_inbox(const std::string& name) {
    const auto inbox = [this](caf::event_based_actor*) {
      return caf::behavior{[this](const Delivery& delivery) {
        deliveries.put(delivery);
        happened.put(true);
      }};
    };
    actors_.push_back(system_.spawn(inbox));
    mailer.bind(name, actors_.back());
  }

  LinkStatusList link_status() {
    LinkStatusList status;
    caf::scoped_actor self(system_);
    self->request(endpoint, patience, GetLinkStatus{})
        .receive([&](const LinkStatusList& answer) { status = answer; }, [](const caf::error&) {});
    return status;
  }

  Mailslot<Delivery> deliveries;
  Mailslot<NodeDown> down;
  Mailslot<Error> failures;
  Mailslot<bool> happened;  ///< in this order: true for a delivery, false for a peer that is down

 private:
  static caf::actor_system_config& configured(caf::actor_system_config& config) {
    configure_system(config);
    return config;
  }

  caf::actor_system_config config_;
  caf::actor_system system_;
  std::vector<caf::actor> actors_;

 public:
  std::unique_ptr<BaspNetwork> network;
  caf::actor endpoint;
  Mailer mailer;
};

/// Publishes each endpoint, connects both ways, attaches. Returns the port of `a`.
inline std::uint16_t connect(RealNode& a, RealNode& b) {
  const auto port = a.network->publish(a.endpoint, "127.0.0.1", 0);
  if (!port) return 0;
  const auto remote_a = b.network->connect("127.0.0.1", *port, patience);
  const auto port_b = b.network->publish(b.endpoint, "127.0.0.1", 0);
  if (!remote_a || !port_b) return 0;
  const auto remote_b = a.network->connect("127.0.0.1", *port_b, patience);
  if (!remote_b) return 0;
  caf::anon_send(a.endpoint, AttachPeer{b.mailer.node(), *remote_b});
  caf::anon_send(b.endpoint, AttachPeer{a.mailer.node(), *remote_a});
  return *port;
}

}  // namespace troupe::testing
