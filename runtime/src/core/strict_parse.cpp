#include "troupe/strict_parse.hpp"

#include <memory>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

namespace troupe {
namespace {

namespace pb = google::protobuf;

bool holds_unknown_content(const pb::Any& any) {
  const std::string& url = any.type_url();
  const auto* type =
      pb::DescriptorPool::generated_pool()->FindMessageTypeByName(url.substr(url.rfind('/') + 1));
  if (type == nullptr) return false;
  const pb::Message* prototype = pb::MessageFactory::generated_factory()->GetPrototype(type);
  if (prototype == nullptr) return false;
  const std::unique_ptr<pb::Message> content(prototype->New());
  return !content->ParseFromString(any.value()) || has_unknown_fields(*content);
}

}  // namespace

bool has_unknown_fields(const pb::Message& message) {
  const auto* reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty()) return true;
  if (message.GetDescriptor() == pb::Any::descriptor())
    return holds_unknown_content(static_cast<const pb::Any&>(message));
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (has_unknown_fields(reflection->GetMessage(message, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      if (has_unknown_fields(reflection->GetRepeatedMessage(message, field, i))) return true;
  }
  return false;
}

Result<void> parse_strictly(const std::string& bytes, pb::Message& message) {
  const std::string& type = message.GetDescriptor()->full_name();
  if (!message.ParseFromString(bytes))
    return cluster_error("", "no " + type + " in " + std::to_string(bytes.size()) + " bytes");
  if (has_unknown_fields(message))
    return cluster_error("", type + " with unknown fields",
                         "install the same version of Troupe on every machine");
  return {};
}

Result<void> unpack_strictly(const pb::Any& any, pb::Message& message) {
  const std::string& type = message.GetDescriptor()->full_name();
  const std::string& url = any.type_url();
  if (url.substr(url.rfind('/') + 1) != type)
    return cluster_error("", "\"" + url + "\" where a " + type + " is expected");
  return parse_strictly(any.value(), message);
}

}  // namespace troupe
