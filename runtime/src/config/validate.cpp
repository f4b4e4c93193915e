#include "troupe/validate.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/text_format.h>

#include "config/loader.hpp"
#include "config/suggest.hpp"
#include "troupe/runtime/v1/options.pb.h"

namespace troupe {
namespace {

namespace pb = google::protobuf;
namespace v1 = runtime::v1;
using Field = pb::FieldDescriptor;
using Locate = std::function<std::string(const std::string& path)>;

/// The value of a numeric field; `index` is -1 for a singular one. Nothing for other types.
std::optional<double> number_of(const pb::Message& message, const Field& field, int index) {
  const auto& r = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return one ? r.GetInt32(message, &field) : r.GetRepeatedInt32(message, &field, index);
    case Field::CPPTYPE_INT64:
      return one ? r.GetInt64(message, &field) : r.GetRepeatedInt64(message, &field, index);
    case Field::CPPTYPE_UINT32:
      return one ? r.GetUInt32(message, &field) : r.GetRepeatedUInt32(message, &field, index);
    case Field::CPPTYPE_UINT64:
      return one ? r.GetUInt64(message, &field) : r.GetRepeatedUInt64(message, &field, index);
    case Field::CPPTYPE_DOUBLE:
      return one ? r.GetDouble(message, &field) : r.GetRepeatedDouble(message, &field, index);
    case Field::CPPTYPE_FLOAT:
      return one ? r.GetFloat(message, &field) : r.GetRepeatedFloat(message, &field, index);
    default: return std::nullopt;
  }
}

std::string print_value(const pb::Message& message, const Field& field, int index) {
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, &field, index, &text);
  return text;
}

/// Written so that a NaN is outside of every range.
bool inside(const v1::Range& range, double value) {
  return (!range.has_min() || value >= range.min()) && (!range.has_max() || value <= range.max()) &&
         (!range.has_above() || value > range.above()) &&
         (!range.has_below() || value < range.below());
}

std::string describe(const v1::Range& range) {
  std::vector<std::string> bounds;
  if (range.has_min()) bounds.push_back(fmt::format("at least {:.15g}", range.min()));
  if (range.has_above()) bounds.push_back(fmt::format("greater than {:.15g}", range.above()));
  if (range.has_max()) bounds.push_back(fmt::format("at most {:.15g}", range.max()));
  if (range.has_below()) bounds.push_back(fmt::format("less than {:.15g}", range.below()));
  return fmt::format("it must be {}", fmt::join(bounds, " and "));
}

class Validator {
 public:
  explicit Validator(const Locate& locate) : locate_(locate) {}

  Result<void> message(const std::string& prefix, const pb::Message& message) {
    const auto& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const auto& field = *type.field(i);
      const auto path = prefix + field.name();
      if (field.is_repeated()) {
        TROUPE_TRY(repeated(path, message, field));
      } else {
        TROUPE_TRY(singular(path, message, field));
      }
    }
    // The real oneofs come before those that stand for `optional`.
    for (int i = 0; i < type.real_oneof_decl_count(); ++i)
      TROUPE_TRY(one_of(prefix, message, *type.oneof_decl(i)));
    return {};
  }

 private:
  Error fail(const std::string& path, std::string what, std::string hint = {}) const {
    return bad_input(locate_(path), std::move(what), std::move(hint));
  }

  static std::string how_to_write(const Field& field) {
    switch (field.cpp_type()) {
      case Field::CPPTYPE_MESSAGE: return fmt::format("write `{} {{ ... }}`", field.name());
      case Field::CPPTYPE_STRING: return fmt::format("write `{}: \"...\"`", field.name());
      default: return fmt::format("write `{}: ...`", field.name());
    }
  }

  Result<void> repeated(const std::string& path, const pb::Message& message, const Field& field) {
    const auto& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    const auto min_items = field.options().GetExtension(v1::min_items);
    if (static_cast<std::uint32_t>(size) < min_items) {
      if (size == 0)
        return fail(path, path + " is missing", fmt::format("give at least {}", min_items));
      return fail(path, fmt::format("{} has {} elements", path, size),
                  fmt::format("give at least {}", min_items));
    }
    for (int i = 0; i < size; ++i)
      TROUPE_TRY(element(element_path(path, message, field, i), message, field, i));
    return {};
  }

  static std::string element_path(const std::string& path, const pb::Message& message,
                                  const Field& field, int index) {
    if (!field.is_map()) return fmt::format("{}[{}]", path, index);
    const auto& entry = message.GetReflection()->GetRepeatedMessage(message, &field, index);
    const auto& key = *field.message_type()->map_key();
    if (key.cpp_type() != Field::CPPTYPE_STRING)
      return fmt::format("{}[{}]", path, print_value(entry, key, -1));
    return fmt::format("{}[{}]", path, entry.GetReflection()->GetString(entry, &key));
  }

  Result<void> element(const std::string& path, const pb::Message& message, const Field& field,
                       int index) {
    if (field.cpp_type() != Field::CPPTYPE_MESSAGE) return value(path, message, field, index);
    const auto& inner = message.GetReflection()->GetRepeatedMessage(message, &field, index);
    if (!field.is_map()) return this->message(path + ".", inner);
    const auto& map_value = *field.message_type()->map_value();
    if (map_value.cpp_type() != Field::CPPTYPE_MESSAGE) return value(path, inner, map_value, -1);
    return this->message(path + ".", inner.GetReflection()->GetMessage(inner, &map_value));
  }

  Result<void> singular(const std::string& path, const pb::Message& message, const Field& field) {
    const auto& options = field.options();
    const auto& reflection = *message.GetReflection();
    // Without explicit presence a field that is not written reads as zero.
    const bool written = reflection.HasField(message, &field);
    if (!written) {
      if (options.GetExtension(v1::required))
        return fail(path, path + " is missing", how_to_write(field));
      const bool zero_means_default =
          field.has_presence() || !options.GetExtension(v1::default_text).empty();
      if (zero_means_default || inside(options.GetExtension(v1::range), 0)) return {};
      return fail(path, path + " is missing or 0", describe(options.GetExtension(v1::range)));
    }
    if (field.cpp_type() != Field::CPPTYPE_MESSAGE) return value(path, message, field, -1);
    const auto& inner = reflection.GetMessage(message, &field);
    if (inner.GetDescriptor() == pb::Any::descriptor()) return {};
    return this->message(path + ".", inner);
  }

  /// One scalar that is there.
  Result<void> value(const std::string& path, const pb::Message& message, const Field& field,
                     int index) {
    if (field.cpp_type() == Field::CPPTYPE_ENUM) return enum_value(path, message, field, index);
    const auto number = number_of(message, field, index);
    if (!number) return {};
    const auto& range = field.options().GetExtension(v1::range);
    if (std::isfinite(*number) && inside(range, *number)) return {};
    return fail(path, fmt::format("{} is {}", path, print_value(message, field, index)),
                std::isfinite(*number) ? describe(range) : "give a finite number");
  }

  /// The text format lets numbers through that no value has.
  Result<void> enum_value(const std::string& path, const pb::Message& message, const Field& field,
                          int index) {
    const auto& reflection = *message.GetReflection();
    const int number = index < 0 ? reflection.GetEnumValue(message, &field)
                                 : reflection.GetRepeatedEnumValue(message, &field, index);
    if (field.enum_type()->FindValueByNumber(number)) return {};
    return fail(path, fmt::format("{} is {}, which no value has", path, number),
                fmt::format("values: {}", fmt::join(value_names(*field.enum_type()), ", ")));
  }

  Result<void> one_of(const std::string& prefix, const pb::Message& message,
                      const pb::OneofDescriptor& oneof) {
    if (!oneof.options().GetExtension(v1::oneof_required) ||
        message.GetReflection()->HasOneof(message, &oneof))
      return {};
    std::vector<std::string> members;
    for (int i = 0; i < oneof.field_count(); ++i) members.push_back(oneof.field(i)->name());
    return fail(prefix + oneof.name(), fmt::format("{}{} is missing", prefix, oneof.name()),
                fmt::format("give one of: {}", fmt::join(members, ", ")));
  }

  const Locate& locate_;
};

}  // namespace

Result<void> validate_at(const std::string& prefix, const google::protobuf::Message& message,
                         const Locate& locate) {
  return Validator(locate).message(prefix, message);
}

Result<void> validate(const google::protobuf::Message& message, const Locate& locate) {
  return validate_at("", message, locate);
}

}  // namespace troupe
