#include "actor/control_codec.hpp"

#include <utility>

#include <fmt/format.h>

#include "actor/version.hpp"
#include "troupe/plugin.hpp"
#include "troupe/strict_parse.hpp"

namespace troupe {
namespace {

template <class Message>
Result<Message> decode(const ControlBytes& control) {
  auto message = parse_strictly<Message>(control.bytes);
  if (!message) {
    Error error = std::move(message).error();
    error.where = "control message";
    return error;
  }
  if (message->kind_case() == Message::KIND_NOT_SET)
    return cluster_error("control message", "empty " + Message::descriptor()->full_name());
  return message;
}

template <class Peer>
Result<void> check(const std::string& who, const Peer& peer) {
  const char* hint = "install the same version of Troupe on every machine";
  if (peer.version() != version())
    return cluster_error(who, fmt::format("runs Troupe {}, this is {}", peer.version(), version()),
                         hint);
  if (peer.plugin_abi() != plugin_abi_version)
    return cluster_error(
        who,
        fmt::format("has plugin interface {}, this has {}", peer.plugin_abi(), plugin_abi_version),
        hint);
  if (peer.descriptor_hash() != descriptor_hash())
    return cluster_error(who, "was built with other message definitions", hint);
  return {};
}

}  // namespace

ControlBytes encode(const google::protobuf::Message& message) {
  return {message.SerializeAsString()};
}

Result<runtime::v1::Request> decode_request(const ControlBytes& control) {
  return decode<runtime::v1::Request>(control);
}

Result<runtime::v1::Response> decode_response(const ControlBytes& control) {
  TROUPE_ASSIGN(auto response, decode<runtime::v1::Response>(control));
  if (response.has_failure()) return to_error(response.failure());
  return response;
}

runtime::v1::Failure to_failure(const Error& error) {
  runtime::v1::Failure failure;
  failure.set_code(static_cast<std::uint32_t>(error.code));
  failure.set_where(error.where);
  failure.set_what(error.what);
  failure.set_hint(error.hint);
  return failure;
}

Error to_error(const runtime::v1::Failure& failure) {
  const auto code = failure.code() <= static_cast<std::uint32_t>(ErrorCode::interrupted)
                        ? static_cast<ErrorCode>(failure.code())
                        : ErrorCode::internal;
  return {code, failure.where(), failure.what(), failure.hint()};
}

ControlBytes encode_failure(const Error& error) {
  runtime::v1::Response response;
  *response.mutable_failure() = to_failure(error);
  return encode(response);
}

ControlBytes encode_done() {
  runtime::v1::Response response;
  response.mutable_done();
  return encode(response);
}

runtime::v1::Request make_tool_hello() {
  runtime::v1::Request request;
  runtime::v1::Hello& hello = *request.mutable_hello();
  hello.set_version(version());
  hello.set_plugin_abi(plugin_abi_version);
  hello.set_descriptor_hash(descriptor_hash());
  return request;
}

runtime::v1::Request make_hello(const std::string& node, const RunKey& run_key) {
  runtime::v1::Request request = make_tool_hello();
  request.mutable_hello()->set_node(node);
  request.set_run_key(run_key.bytes());
  return request;
}

Result<void> check_peer(const std::string& who, const runtime::v1::Hello& peer) {
  return check(who, peer);
}

Result<void> check_peer(const std::string& who, const runtime::v1::NodeInfo& peer) {
  return check(who, peer);
}

}  // namespace troupe
