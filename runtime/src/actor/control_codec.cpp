#include "actor/control_codec.hpp"

#include <unistd.h>

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include "app/machine.hpp"
#include "app/version.hpp"
#include "troupe/plugin.hpp"

namespace troupe {
namespace {

template <class Message>
Result<Message> decode(const ControlBytes& control) {
  Message message;
  if (!message.ParseFromString(control.bytes))
    return cluster_error("control message", "not a " + Message::descriptor()->full_name());
  if (has_unknown_fields(message))
    return cluster_error("control message", "holds fields this version does not know",
                         "install the same version of Troupe on every machine");
  if (message.kind_case() == Message::KIND_NOT_SET)
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

bool has_unknown_fields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty()) return true;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (has_unknown_fields(reflection->GetMessage(message, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      if (has_unknown_fields(reflection->GetRepeatedMessage(message, field, i))) return true;
  }
  return false;
}

runtime::v1::NodeInfo describe_this_process(const std::string& name) {
  runtime::v1::NodeInfo info;
  info.set_name(name);
  info.set_version(version());
  info.set_plugin_abi(plugin_abi_version);
  info.set_descriptor_hash(descriptor_hash());
  info.set_pid(getpid());
  char host_name[256] = {};
  gethostname(host_name, sizeof host_name - 1);
  info.set_host_name(host_name);
  *info.mutable_fingerprint() = numeric_fingerprint(read_machine(), current_environment());
  return info;
}

runtime::v1::Hello make_hello(const std::string& node, const std::string& job) {
  runtime::v1::Hello hello;
  hello.set_node(node);
  hello.set_job(job);
  hello.set_version(version());
  hello.set_plugin_abi(plugin_abi_version);
  hello.set_descriptor_hash(descriptor_hash());
  return hello;
}

Result<void> check_peer(const std::string& who, const runtime::v1::Hello& peer) {
  return check(who, peer);
}

Result<void> check_peer(const std::string& who, const runtime::v1::NodeInfo& peer) {
  return check(who, peer);
}

}  // namespace troupe
