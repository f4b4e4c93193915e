#include "transport/basp_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <caf/actor_registry.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "core/host_port.hpp"
#include "transport/limited_middleman.hpp"
#include "transport/listen.hpp"
#include "transport/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds first_pause{20};
constexpr std::chrono::milliseconds longest_pause{500};

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
    : system_(system),
      dialed_(std::make_shared<SocketHandover>()),
      listening_(std::make_shared<SocketHandover>()),
      middleman_(spawn_limited_middleman(system, max_frame_bytes, dialed_, listening_)) {}

BaspNetwork::~BaspNetwork() {
  stop();
  caf::scoped_actor self(system_);
  self->send_exit(middleman_, caf::exit_reason::user_shutdown);
  self->wait_for(middleman_);
}

void BaspNetwork::stop() {
  stopped_ = true;
  dialed_->hang_up_all();
}

Result<std::uint16_t> BaspNetwork::publish(const caf::actor& actor, const std::string& host,
                                           std::uint16_t port) {
  TROUPE_ASSIGN(const Listening listening, listen_on(host, port));
  const SocketHandover::Key key(host, listening.port);
  listening_->offer(key, listening.socket);
  Result<std::uint16_t> result = listening.port;
  caf::scoped_actor self(system_);
  self->request(middleman_, caf::infinite, caf::publish_atom::value, listening.port,
                caf::actor_cast<caf::strong_actor_ptr>(actor), std::set<std::string>{}, host, true)
      .receive([](std::uint16_t) {},
               [&](const caf::error& error) {
                 result = internal_error(to_string(HostPort{host, listening.port}),
                                         "cannot publish: " + system_.render(error));
               });
  listening_->finish(key, false);
  return result;
}

void BaspNetwork::unpublish(const caf::actor& actor, std::uint16_t port) {
  caf::scoped_actor self(system_);
  // Fails only if the port is closed already.
  self->request(middleman_, caf::infinite, caf::unpublish_atom::value, actor.address(), port)
      .receive([] {}, [](const caf::error&) {});
}

Result<caf::actor> BaspNetwork::handshake(const std::string& where,
                                          const SocketHandover::Key& address,
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
  const std::string where = to_string(HostPort{host, port});
  const Clock::time_point deadline = Clock::now() + timeout;
  TROUPE_ASSIGN(const ResolvedHost resolved, ResolvedHost::resolve(host, port));
  const auto left = [&] {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return std::max(rest, std::chrono::milliseconds(1));
  };
  for (auto pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    Result<caf::actor> result = caf::actor{};
    auto dialed = resolved.dial(left(), &stopped_);
    if (stopped_) {
      if (dialed) ::close(dialed->socket);
      return cluster_error(where, "cannot connect: this process shuts down");
    }
    if (dialed) {
      const SocketHandover::Key address(dialed->address, port);
      dialed_->offer(address, dialed->socket);
      result = handshake(where, address, left());
      if (result) return result;
    } else {
      result = std::move(dialed).error();
    }
    if (stopped_ || Clock::now() + pause >= deadline) return result;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace troupe
