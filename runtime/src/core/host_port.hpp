#pragma once

#include <cstdint>
#include <string>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Where a process listens.
struct HostPort {
  std::string host;  ///< a name or a numeric address, an IPv6 one without brackets
  std::uint16_t port = 0;
};

/// `HOST:PORT`, an IPv6 host in brackets: what `parse_address` reads.
TROUPE_API std::string to_string(const HostPort& address);

/// `HOST:PORT`, `[IPv6]:PORT`; a port of 1 to 65535. Errors (bad_input).
TROUPE_API Result<HostPort> parse_address(const std::string& address);

/// Whether a host names this machine only: "localhost", 127.0.0.0/8, ::1.
TROUPE_API bool is_loopback(const std::string& host);

}  // namespace troupe
