#include "transport/limited_middleman.hpp"

#include <sys/socket.h>

#include <chrono>
#include <deque>
#include <string>
#include <utility>

#include <caf/io/basp_broker.hpp>
#include <caf/io/doorman.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/scribe_impl.hpp>

namespace troupe {
namespace {

namespace net = caf::io::network;

/// Size of BASP's own frame header, which is read before every payload.
constexpr std::size_t basp_header_bytes = 32;
/// Longest wait of the middleman's own thread for a connection. The socket is normally connected
/// before it is asked.
constexpr std::chrono::milliseconds redial_timeout{2000};

class LimitedScribe;

/// The accepted connections whose handshake has not come yet, oldest first. Used by the
/// multiplexer's thread only.
class OpenHandshakes {
 public:
  void add(LimitedScribe& scribe);
  void remove(const LimitedScribe& scribe);

 private:
  std::deque<LimitedScribe*> scribes_;
};

/// CAF asks for `config.second` bytes when it has read a frame's header, and would resize its
/// buffer to that.
class LimitedScribe : public net::scribe_impl {
 public:
  /// `handshakes` is null for a dialed connection: its dialer ends it.
  LimitedScribe(net::default_multiplexer& multiplexer, net::native_socket socket,
                std::size_t max_frame_bytes, std::shared_ptr<OpenHandshakes> handshakes)
      : scribe_impl(multiplexer, socket),
        max_frame_bytes_(max_frame_bytes),
        handshakes_(std::move(handshakes)) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (handshakes_) handshakes_->add(*this);
  }

  ~LimitedScribe() override { leave_handshakes(); }

  void configure_read(caf::io::receive_policy::config config) override {
    // Asked for first, and again after every payload or header without one: a header.
    const std::size_t limit = shaken_ ? max_frame_bytes_ : max_handshake_bytes;
    if (config.second > limit) {
      hang_up();
      config = caf::io::receive_policy::exactly(basp_header_bytes);
    } else if (++requests_ > 1 && !shaken_) {
      // The first payload of a connection is its handshake.
      shaken_ = true;
      leave_handshakes();
    }
    scribe_impl::configure_read(config);
  }

  void hang_up() { ::shutdown(stream_.fd(), SHUT_RDWR); }

 private:
  void leave_handshakes() {
    if (auto handshakes = std::move(handshakes_)) handshakes->remove(*this);
  }

  std::size_t max_frame_bytes_;
  std::shared_ptr<OpenHandshakes> handshakes_;
  std::size_t requests_ = 0;
  bool shaken_ = false;
};

void OpenHandshakes::add(LimitedScribe& scribe) {
  if (scribes_.size() >= max_open_handshakes) {
    scribes_.front()->hang_up();
    scribes_.pop_front();
  }
  scribes_.push_back(&scribe);
}

void OpenHandshakes::remove(const LimitedScribe& scribe) {
  for (auto entry = scribes_.begin(); entry != scribes_.end(); ++entry) {
    if (*entry != &scribe) continue;
    scribes_.erase(entry);
    return;
  }
}

/// Accepts connections as limited scribes.
class LimitedDoorman : public net::doorman_impl {
 public:
  LimitedDoorman(net::default_multiplexer& multiplexer, net::native_socket socket,
                 std::size_t max_frame_bytes)
      : doorman_impl(multiplexer, socket), max_frame_bytes_(max_frame_bytes) {}

  bool new_connection() override {
    auto& multiplexer = acceptor_.backend();
    const net::native_socket socket = acceptor_.accepted_socket();
    if (detached()) {
      net::close_socket(socket);
      return false;
    }
    net::nonblocking(socket, true);
    auto scribe =
        caf::make_counted<LimitedScribe>(multiplexer, socket, max_frame_bytes_, handshakes_);
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&multiplexer, handle);
  }

 private:
  std::size_t max_frame_bytes_;
  std::shared_ptr<OpenHandshakes> handshakes_ = std::make_shared<OpenHandshakes>();
};

class LimitedMiddleman : public caf::io::middleman_actor_impl {
 public:
  LimitedMiddleman(caf::actor_config& config, caf::actor broker, std::size_t max_frame_bytes,
                   std::shared_ptr<SocketHandover> dialed,
                   std::shared_ptr<SocketHandover> listening)
      : middleman_actor_impl(config, std::move(broker)),
        max_frame_bytes_(max_frame_bytes),
        dialed_(std::move(dialed)),
        listening_(std::move(listening)) {
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
        caf::make_counted<LimitedScribe>(multiplexer(), socket, max_frame_bytes_, nullptr));
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t port, const char* address, bool) override {
    const int socket = listening_->take({address == nullptr ? "" : address, port});
    if (socket < 0) return caf::make_error(caf::sec::cannot_open_port);
    return caf::io::doorman_ptr(
        caf::make_counted<LimitedDoorman>(multiplexer(), socket, max_frame_bytes_));
  }

 private:
  net::default_multiplexer& multiplexer() {
    return static_cast<net::default_multiplexer&>(system().middleman().backend());
  }

  std::size_t max_frame_bytes_;
  std::shared_ptr<SocketHandover> dialed_;
  std::shared_ptr<SocketHandover> listening_;
};

}  // namespace

caf::io::middleman_actor spawn_limited_middleman(caf::actor_system& system,
                                                 std::size_t max_frame_bytes,
                                                 std::shared_ptr<SocketHandover> dialed,
                                                 std::shared_ptr<SocketHandover> listening) {
  const caf::actor broker =
      system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<LimitedMiddleman, caf::detached + caf::hidden>(
      broker, max_frame_bytes, std::move(dialed), std::move(listening));
}

}  // namespace troupe
