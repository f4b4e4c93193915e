#pragma once

#include <google/protobuf/message.h>

#include "core/run_key.hpp"
#include "transport/wire.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

/// Control messages between processes: runtime.v1.Request and Response as bytes. A hello is sent as
/// the CAF message (ControlBytes, strong_actor_ptr): the handle is the caller's endpoint, or null
/// for a tool; its answer has the same form. Every other request and answer is (ControlBytes).

namespace troupe {

TROUPE_API ControlBytes encode(const google::protobuf::Message& message);

/// Errors (cluster): bytes that are no such message, no kind set, or fields this version does not
/// know, at any depth.
TROUPE_API Result<runtime::v1::Request> decode_request(const ControlBytes& control);

/// The same; a Failure in the response comes back as the error it holds.
TROUPE_API Result<runtime::v1::Response> decode_response(const ControlBytes& control);

TROUPE_API runtime::v1::Failure to_failure(const Error& error);
TROUPE_API Error to_error(const runtime::v1::Failure& failure);

TROUPE_API ControlBytes encode_failure(const Error& error);
TROUPE_API ControlBytes encode_done();

/// The first request to another process, of a node of the run with this key.
TROUPE_API runtime::v1::Request make_hello(const std::string& node, const RunKey& run_key);
/// The same of a tool, which belongs to no run.
TROUPE_API runtime::v1::Request make_tool_hello();

/// Whether two processes can work together: same version, plugin ABI and descriptors. `who` is
/// the other side. Errors (cluster) say what to install.
TROUPE_API Result<void> check_peer(const std::string& who, const runtime::v1::Hello& peer);
TROUPE_API Result<void> check_peer(const std::string& who, const runtime::v1::NodeInfo& peer);

}  // namespace troupe
