#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman_actor.hpp>

#include "transport/dial.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Frames above this are refused before memory is taken for them: a chunk (at most 16 MiB), a
/// plugin header (at most 8 MiB) or a control message, with room for CAF's own fields.
inline constexpr std::size_t default_max_frame_bytes = 32U << 20;

/// Settings of CAF that all processes of Troupe share: the middleman module, the wire types, one
/// shared run queue, no deserializer threads (one copy less for each payload), no CAF config file.
/// Call before the actor system is made; the config is not to be `parse`d afterwards.
TROUPE_API void configure_system(caf::actor_system_config& config);

/// Stops the servers that CAF starts in every system and that let any peer spawn actors or read
/// the configuration here. Call right after the system is made, before anything is published.
TROUPE_API void close_default_servers(caf::actor_system& system);

/// The network of one actor system: CAF's BASP protocol on connections that refuse oversize
/// frames. All functions but the destructor block and may be called from any thread that is not a
/// scheduler's (use a detached actor). Must be destroyed before the system, for it holds a
/// detached actor.
class TROUPE_API BaspNetwork {
 public:
  explicit BaspNetwork(caf::actor_system& system,
                       std::size_t max_frame_bytes = default_max_frame_bytes);
  ~BaspNetwork();
  BaspNetwork(const BaspNetwork&) = delete;
  BaspNetwork& operator=(const BaspNetwork&) = delete;

  /// Ends what `connect` waits for, in whatever thread, and lets no more of it begin. To be called
  /// before one waits for the actors that connect.
  void stop();

  /// Listens on `host`:`port` (0: any free port) and gives `actor` to whoever connects. Returns
  /// the port. Errors (cluster) are those of `listen_on`.
  Result<std::uint16_t> publish(const caf::actor& actor, const std::string& host,
                                std::uint16_t port);

  /// Closes the port that `publish` returned; connections stay.
  void unpublish(const caf::actor& actor, std::uint16_t port);

  /// The actor that is published at `host`:`port`. Tries again, with growing pauses, while the
  /// port refuses or a handshake fails, until `timeout`. Reachability is tried outside CAF first,
  /// so that a host that swallows packets delays only this call. Errors (cluster) name
  /// `host:port`; one is that the network was stopped.
  Result<caf::actor> connect(const std::string& host, std::uint16_t port,
                             std::chrono::milliseconds timeout);

 private:
  Result<caf::actor> handshake(const std::string& where, const SocketHandover::Key& address,
                               std::chrono::milliseconds timeout);

  caf::actor_system& system_;
  std::shared_ptr<SocketHandover> dialed_;
  std::shared_ptr<SocketHandover> listening_;
  std::atomic<bool> stopped_{false};
  caf::io::middleman_actor middleman_;
};

}  // namespace troupe
