#include "transport/basp_limits.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <caf/actor_registry.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/doorman.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/scribe_impl.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actor/wire.hpp"

namespace troupe {
namespace {

namespace net = caf::io::network;

/// Size of BASP's own frame header, which is read before every payload.
constexpr std::size_t basp_header_bytes = 32;
/// Longest wait of the middleman's own thread for a connection. The socket is normally connected
/// before it is asked.
constexpr std::chrono::milliseconds redial_timeout{2000};
constexpr std::chrono::milliseconds first_pause{20};
constexpr std::chrono::milliseconds longest_pause{500};

/// A connection that is closed as soon as the peer announces a frame over the limit. CAF asks for
/// `config.second` bytes when it has read a frame's header, and would resize its buffer to that.
class LimitedScribe : public net::scribe_impl {
 public:
  LimitedScribe(net::default_multiplexer& multiplexer, net::native_socket socket,
                std::size_t max_frame_bytes)
      : scribe_impl(multiplexer, socket), max_frame_bytes_(max_frame_bytes) {}

  void configure_read(caf::io::receive_policy::config config) override {
    if (config.second > max_frame_bytes_) {
      ::shutdown(stream_.fd(), SHUT_RDWR);
      config = caf::io::receive_policy::exactly(basp_header_bytes);
    }
    scribe_impl::configure_read(config);
  }

 private:
  std::size_t max_frame_bytes_;
};

/// Accepts connections as limited scribes.
class LimitedDoorman : public net::doorman_impl {
 public:
  LimitedDoorman(net::default_multiplexer& multiplexer, net::native_socket socket,
                 std::size_t max_frame_bytes)
      : doorman_impl(multiplexer, socket), max_frame_bytes_(max_frame_bytes) {}

  bool new_connection() override {
    if (detached()) return false;
    auto& multiplexer = acceptor_.backend();
    const net::native_socket socket = acceptor_.accepted_socket();
    net::nonblocking(socket, true);
    auto scribe = caf::make_counted<LimitedScribe>(multiplexer, socket, max_frame_bytes_);
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&multiplexer, handle);
  }

 private:
  std::size_t max_frame_bytes_;
};

/// CAF's middleman actor with limited connections in both directions: CAF's own extension point,
/// which its TLS module uses too.
class LimitedMiddleman : public caf::io::middleman_actor_impl {
 public:
  LimitedMiddleman(caf::actor_config& config, caf::actor broker, std::size_t max_frame_bytes,
                   std::shared_ptr<DialedSockets> dialed)
      : middleman_actor_impl(config, std::move(broker)),
        max_frame_bytes_(max_frame_bytes),
        dialed_(std::move(dialed)) {
    // The base class ignores exit messages; its owner here is BaspNetwork, not CAF's middleman.
    set_exit_handler([this](const caf::exit_msg& message) { quit(message.reason); });
  }

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, uint16_t port) override {
    int socket = dialed_->take({host, port});
    if (socket < 0) {
      auto resolved = ResolvedHost::resolve(host, port);
      if (!resolved) return caf::make_error(caf::sec::cannot_connect_to_node);
      auto redialed = resolved->dial(redial_timeout);
      if (!redialed) return caf::make_error(caf::sec::cannot_connect_to_node);
      socket = redialed->socket;
    }
    return caf::io::scribe_ptr(
        caf::make_counted<LimitedScribe>(multiplexer(), socket, max_frame_bytes_));
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t port, const char* address,
                                           bool reuse) override {
    auto socket = net::new_tcp_acceptor_impl(port, address, reuse);
    if (!socket) return std::move(socket.error());
    return caf::io::doorman_ptr(
        caf::make_counted<LimitedDoorman>(multiplexer(), *socket, max_frame_bytes_));
  }

 private:
  net::default_multiplexer& multiplexer() {
    return static_cast<net::default_multiplexer&>(system().middleman().backend());
  }

  std::size_t max_frame_bytes_;
  std::shared_ptr<DialedSockets> dialed_;
};

}  // namespace

void configure_system(caf::actor_system_config& config) {
  config.load<caf::io::middleman>();
  add_wire_types(config);
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("middleman.workers", std::size_t{0});
  config.config_file_path.clear();
}

void close_default_servers(caf::actor_system& system) {
  for (const char* name : {"SpawnServ", "ConfigServ", "StreamServ"})
    system.registry().erase(caf::atom_from_string(name));
}

BaspNetwork::BaspNetwork(caf::actor_system& system, std::size_t max_frame_bytes)
    : system_(system), dialed_(std::make_shared<DialedSockets>()) {
  const caf::actor broker =
      system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  middleman_ =
      system.spawn<LimitedMiddleman, caf::detached + caf::hidden>(broker, max_frame_bytes, dialed_);
}

BaspNetwork::~BaspNetwork() {
  caf::scoped_actor self(system_);
  self->send_exit(middleman_, caf::exit_reason::user_shutdown);
  self->wait_for(middleman_);
}

Result<std::uint16_t> BaspNetwork::publish(const caf::actor& actor, const std::string& host,
                                           std::uint16_t port) {
  Result<std::uint16_t> result = std::uint16_t{0};
  caf::scoped_actor self(system_);
  self->request(middleman_, caf::infinite, caf::publish_atom::value, port,
                caf::actor_cast<caf::strong_actor_ptr>(actor), std::set<std::string>{}, host, true)
      .receive([&](std::uint16_t bound) { result = bound; },
               [&](const caf::error&) {
                 result = cluster_error(host + ":" + std::to_string(port),
                                        "cannot listen on this address",
                                        "the port may be taken (choose another one, or 0 for any "
                                        "free one), or the host may not be of this machine");
               });
  return result;
}

void BaspNetwork::unpublish(const caf::actor& actor, std::uint16_t port) {
  caf::scoped_actor self(system_);
  // Fails only if the port is closed already.
  self->request(middleman_, caf::infinite, caf::unpublish_atom::value, actor.address(), port)
      .receive([] {}, [](const caf::error&) {});
}

Result<caf::actor> BaspNetwork::handshake(const std::string& where,
                                          const DialedSockets::Key& address,
                                          std::chrono::milliseconds timeout) {
  Result<caf::actor> result = caf::actor{};
  bool mute = false;
  caf::scoped_actor self(system_);
  self->request(middleman_, timeout, caf::connect_atom::value, address.first, address.second)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& actor,
              const std::set<std::string>&) {
            if (actor) {
              result = caf::actor_cast<caf::actor>(actor);
            } else {
              result = cluster_error(where, "no actor is published there",
                                     "check that the port is a troupe node's");
            }
          },
          [&](const caf::error& error) {
            mute = error == caf::sec::request_timeout;
            result = cluster_error(
                where, mute ? "accepts connections but does not answer" : "the handshake failed",
                "check that the port is a troupe node's");
          });
  dialed_->finish(address, mute);
  return result;
}

Result<caf::actor> BaspNetwork::connect(const std::string& host, std::uint16_t port,
                                        std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const std::string where = host + ":" + std::to_string(port);
  const Clock::time_point deadline = Clock::now() + timeout;
  TROUPE_ASSIGN(const ResolvedHost resolved, ResolvedHost::resolve(host, port));
  const auto left = [&] {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return std::max(rest, std::chrono::milliseconds(1));
  };
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    Result<caf::actor> result = caf::actor{};
    auto dialed = resolved.dial(left());
    if (dialed) {
      const DialedSockets::Key address(dialed->address, port);
      dialed_->offer(address, dialed->socket);
      result = handshake(where, address, left());
      if (result) return result;
    } else {
      result = std::move(dialed).error();
    }
    if (Clock::now() + pause >= deadline) return result;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace troupe
