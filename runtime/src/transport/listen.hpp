#pragma once

#include <cstdint>
#include <string>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// A TCP socket that listens, and where.
struct Listening {
  int socket = -1;
  std::uint16_t port = 0;
};

/// Listens on `host`:`port` (0: any free port). The caller owns the socket, which is non-blocking.
/// Errors (cluster) tell a taken port, an address of another machine and a port that needs
/// privileges apart.
TROUPE_API Result<Listening> listen_on(const std::string& host, std::uint16_t port);

}  // namespace troupe
