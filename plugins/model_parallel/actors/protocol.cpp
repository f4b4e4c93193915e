#include "actors/protocol.hpp"

#include "core/stage_machine.hpp"
#include "troupe/strict_parse.hpp"

namespace troupe::mp {

Result<v1::Message> parse_message(const Delivery& delivery) {
  const auto where = "message from " + to_string(delivery.from);
  auto message = parse_strictly<v1::Message>(delivery.header);
  if (!message)
    return internal_error(where, "malformed header: " + message.error().what, message.error().hint);
  if (message->body_case() == v1::Message::BODY_NOT_SET)
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
