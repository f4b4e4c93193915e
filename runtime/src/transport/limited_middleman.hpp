#pragma once

#include <cstddef>
#include <memory>

#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>

#include "transport/dial.hpp"

namespace troupe {

/// The most connections that may be in the middle of their handshake. One more, and the oldest of
/// them is closed: a handshake takes a moment, so what is left are strangers that say nothing.
inline constexpr std::size_t max_open_handshakes = 64;

/// The longest payload of a handshake: a node's identity and the signature of an actor.
inline constexpr std::size_t max_handshake_bytes = 64U << 10;

/// Starts CAF's middleman actor with connections of our own in both directions, by CAF's own
/// extension point, which its TLS module uses too. Its connections
/// - are closed when the peer announces a frame over `max_frame_bytes` or a handshake over
///   `max_handshake_bytes`, before memory is taken for it;
/// - are probed by the kernel while they are idle, so that those of vanished machines end.
/// The sockets, dialed and listening, are made by BaspNetwork, which knows what went wrong.
caf::io::middleman_actor spawn_limited_middleman(caf::actor_system& system,
                                                 std::size_t max_frame_bytes,
                                                 std::shared_ptr<SocketHandover> dialed,
                                                 std::shared_ptr<SocketHandover> listening);

}  // namespace troupe
