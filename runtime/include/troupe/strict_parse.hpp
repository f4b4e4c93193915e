#pragma once

#include <string>
#include <utility>

#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

/// Parsing what another process sent. Protobuf skips what it does not know; between processes of
/// one job that would be a part of a request that is silently not done, so it is refused here.

namespace troupe {

/// Whether this message, or one inside it at any depth, holds fields that its descriptor does not
/// know. Looks into an Any too, and takes one whose content is no message of its type for unknown;
/// an Any of a type that is not linked into this process is left to whoever unpacks it.
TROUPE_API bool has_unknown_fields(const google::protobuf::Message& message);

/// Parses `bytes` into `message`. Errors (cluster, without `where`): not a message of this type,
/// unknown fields.
TROUPE_API Result<void> parse_strictly(const std::string& bytes,
                                       google::protobuf::Message& message);

/// The same for the content of an Any. Errors also: a message of another type.
TROUPE_API Result<void> unpack_strictly(const google::protobuf::Any& any,
                                        google::protobuf::Message& message);

template <class Message>
Result<Message> parse_strictly(const std::string& bytes) {
  Message message;
  TROUPE_TRY(parse_strictly(bytes, message));
  return message;
}

template <class Message>
Result<Message> unpack_strictly(const google::protobuf::Any& any) {
  Message message;
  TROUPE_TRY(unpack_strictly(any, message));
  return message;
}

}  // namespace troupe
