#pragma once

#include <netdb.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// A connected TCP socket and the numeric address it leads to.
struct Dialed {
  int socket = -1;
  std::string address;
};

/// The addresses that a host name stands for.
class TROUPE_API ResolvedHost {
 public:
  /// Blocks for as long as the machine's resolver does. Error (cluster): no such host.
  static Result<ResolvedHost> resolve(const std::string& host, std::uint16_t port);

  /// Connects to the first address that answers; blocks for at most `timeout`, and not much longer
  /// than `*stopped` is false. The caller owns the socket, which is non-blocking. Errors (cluster)
  /// name `host:port`.
  Result<Dialed> dial(std::chrono::milliseconds timeout,
                      const std::atomic<bool>* stopped = nullptr) const;

 private:
  ResolvedHost(std::string where, std::shared_ptr<const addrinfo> addresses)
      : where_(std::move(where)), addresses_(std::move(addresses)) {}

  std::string where_;
  std::shared_ptr<const addrinfo> addresses_;  // a list
};

/// Sockets, connected or listening, on their way to CAF's middleman, which asks for them by
/// address, and a hold on each, so that a handshake that a mute peer never answers can be ended.
/// Thread-safe.
class TROUPE_API SocketHandover {
 public:
  using Key = std::pair<std::string, std::uint16_t>;

  SocketHandover() = default;
  ~SocketHandover();
  SocketHandover(const SocketHandover&) = delete;
  SocketHandover& operator=(const SocketHandover&) = delete;

  /// Takes ownership. A second socket for an address that is being dialed already is closed: one
  /// handshake serves both callers.
  void offer(const Key& key, int socket);

  /// The offered socket, now the caller's; -1 if there is none.
  int take(const Key& key);

  /// The counterpart of each `offer`, when the middleman has answered. With `hang_up` the
  /// connection is shut down, which fails the handshake.
  void finish(const Key& key, bool hang_up);

  /// Shuts down every socket whose offer is not finished, and each that is offered from now on.
  void hang_up_all();

 private:
  struct Entry {
    int offered = -1;
    int held = -1;  // a duplicate: valid whatever CAF does with its own
    int users = 0;
  };

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  bool hung_up_ = false;
};

}  // namespace troupe
