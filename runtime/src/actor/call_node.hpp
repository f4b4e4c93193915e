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

/// Whom a process calls.
struct Callee {
  std::string who;      ///< for errors, "node b"; empty: its address says enough
  std::string address;  ///< `HOST:PORT`
  /// The node of the job that is expected there, with an endpoint. Empty: any process of Troupe
  /// will do (launchers have names of their own).
  std::string node;
};

/// `node b at 192.0.2.7:7856`.
TROUPE_API std::string to_string(const Callee& callee);

/// A node actor of another process, after hello.
struct CalledNode {
  caf::actor control;
  caf::actor endpoint;  ///< null unless a node was expected
  runtime::v1::NodeInfo info;
};

/// The actor that is published at the callee's address. Blocks. Errors (cluster) name the callee.
TROUPE_API Result<caf::actor> connect_to(BaspNetwork& network, const Callee& callee,
                                         std::chrono::milliseconds timeout);

/// What an answer to hello is worth: it must come from the same build, and from the node that was
/// called. Errors (cluster) name the callee.
TROUPE_API Result<CalledNode> check_answer(const Callee& callee, const caf::actor& control,
                                           const runtime::v1::Response& answer,
                                           const caf::strong_actor_ptr& endpoint);

/// `connect_to`, a hello on behalf of the blocking actor `self`, and `check_answer`. `endpoint` is
/// the caller's own; null for tools.
TROUPE_API Result<CalledNode> call_node(caf::blocking_actor& self, BaspNetwork& network,
                                        const Callee& callee, const runtime::v1::Request& hello,
                                        const caf::actor& endpoint,
                                        std::chrono::milliseconds timeout);

}  // namespace troupe
