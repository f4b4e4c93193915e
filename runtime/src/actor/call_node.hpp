#pragma once

#include <chrono>
#include <string>

#include <caf/actor.hpp>
#include <caf/blocking_actor.hpp>

#include "transport/basp_limits.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

/// A node actor of another process, after hello.
struct CalledNode {
  caf::actor control;
  caf::strong_actor_ptr endpoint;  ///< null for a launcher
  runtime::v1::NodeInfo info;
};

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

/// `HOST:PORT`, `[IPv6]:PORT`. Errors (bad_input).
TROUPE_API Result<HostPort> parse_address(const std::string& address);

/// The same, written.
TROUPE_API std::string format_address(const std::string& host, std::uint16_t port);

/// Whether a host names this machine only: "localhost", 127.0.0.0/8, ::1.
TROUPE_API bool is_loopback(const std::string& host);

/// Connects and says hello on behalf of the blocking actor `self`. `endpoint` is the caller's own;
/// null for tools. Errors (cluster) name the node and its address.
TROUPE_API Result<CalledNode> call_node(caf::blocking_actor& self, BaspNetwork& network,
                                        const std::string& node, const std::string& address,
                                        const runtime::v1::Hello& hello, const caf::actor& endpoint,
                                        std::chrono::milliseconds timeout);

}  // namespace troupe
