#include "actors/protocol.hpp"

#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace troupe::mp {
namespace {

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

}  // namespace

Result<v1::Message> parse_message(const Delivery& delivery) {
  const auto where = "message from " + to_string(delivery.from);
  v1::Message message;
  if (!message.ParseFromString(delivery.header))
    return internal_error(
        where, "malformed header of " + std::to_string(delivery.header.size()) + " bytes");
  if (has_unknown_fields(message))
    return internal_error(where, "header with unknown fields",
                          "run the same version of troupe on every node");
  if (message.body_case() == v1::Message::BODY_NOT_SET)
    return internal_error(where, "header without a body");
  return message;
}

Parcel make_parcel(const Route& route, const v1::Message& message, Blob payload) {
  Parcel parcel;
  parcel.to = route.to;
  parcel.from = route.from;
  parcel.traffic = route.traffic;
  parcel.unit = route.unit;
  parcel.header = message.SerializeAsString();
  parcel.payload = std::move(payload);
  return parcel;
}

ActorAddress to_address(const v1::StageConfig::Address& address) {
  return {address.node(), address.actor()};
}

v1::Failed to_proto(const Error& error, std::uint32_t stage) {
  v1::Failed failed;
  failed.set_code(static_cast<std::uint32_t>(error.code));
  failed.set_where(error.where);
  failed.set_what(error.what);
  failed.set_hint(error.hint);
  failed.set_stage(stage);
  return failed;
}

Error to_error(const v1::Failed& failed) {
  // A code this build does not know is treated as a defect, never trusted as an enum value.
  const auto known = failed.code() <= static_cast<std::uint32_t>(ErrorCode::interrupted);
  return Error{known ? static_cast<ErrorCode>(failed.code()) : ErrorCode::internal, failed.where(),
               failed.what(), failed.hint()};
}

}  // namespace troupe::mp
