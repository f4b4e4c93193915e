#include "config/override.hpp"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "config/suggest.hpp"
#include "config/text.hpp"

namespace troupe {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

bool is_any(const pb::Descriptor* type) { return type == pb::Any::descriptor(); }

bool is_wrapped(const std::string& text, char open, char close) {
  return text.size() >= 2 && text.front() == open && text.back() == close;
}

template <class Number>
Result<Number> parse_number(const std::string& text, const char* kind) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range)
    return bad_input("", fmt::format("{} is too large or too small for {}", text, kind),
                     fmt::format("it lies between {} and {}", std::numeric_limits<Number>::lowest(),
                                 std::numeric_limits<Number>::max()));
  if (error != std::errc() || stop != end)
    return bad_input("", fmt::format("\"{}\" is not {}", text, kind),
                     "write it in digits, without a unit");
  return number;
}

template <class Number>
Result<Number> parse_unsigned(const std::string& text) {
  if (!text.empty() && text.front() == '-')
    return bad_input("", fmt::format("{} is negative", text), "give a whole number from 0 on");
  return parse_number<Number>(text, "a whole number");
}

Result<bool> parse_bool(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return bad_input("", fmt::format("\"{}\" is not a truth value", text), "give true or false");
}

/// Sets a singular field, or one element of a repeated field when `index` is not negative; an
/// index equal to the size appends.
class FieldWriter {
 public:
  FieldWriter(pb::Message& message, const Field& field, int index)
      : message_(message), reflection_(*message.GetReflection()), field_(field), index_(index) {}

  Result<void> write(const std::string& text) {
    switch (field_.cpp_type()) {
      case Field::CPPTYPE_INT32: {
        TROUPE_ASSIGN(const auto value, parse_number<std::int32_t>(text, "a whole number"));
        return put(value, &Refl::SetInt32, &Refl::SetRepeatedInt32, &Refl::AddInt32);
      }
      case Field::CPPTYPE_INT64: {
        TROUPE_ASSIGN(const auto value, parse_number<std::int64_t>(text, "a whole number"));
        return put(value, &Refl::SetInt64, &Refl::SetRepeatedInt64, &Refl::AddInt64);
      }
      case Field::CPPTYPE_UINT32: {
        TROUPE_ASSIGN(const auto value, parse_unsigned<std::uint32_t>(text));
        return put(value, &Refl::SetUInt32, &Refl::SetRepeatedUInt32, &Refl::AddUInt32);
      }
      case Field::CPPTYPE_UINT64: {
        TROUPE_ASSIGN(const auto value, parse_unsigned<std::uint64_t>(text));
        return put(value, &Refl::SetUInt64, &Refl::SetRepeatedUInt64, &Refl::AddUInt64);
      }
      case Field::CPPTYPE_DOUBLE: {
        TROUPE_ASSIGN(const auto value, parse_number<double>(text, "a number"));
        return put(value, &Refl::SetDouble, &Refl::SetRepeatedDouble, &Refl::AddDouble);
      }
      case Field::CPPTYPE_FLOAT: {
        TROUPE_ASSIGN(const auto value, parse_number<float>(text, "a number"));
        return put(value, &Refl::SetFloat, &Refl::SetRepeatedFloat, &Refl::AddFloat);
      }
      case Field::CPPTYPE_BOOL: {
        TROUPE_ASSIGN(const auto value, parse_bool(text));
        return put(value, &Refl::SetBool, &Refl::SetRepeatedBool, &Refl::AddBool);
      }
      case Field::CPPTYPE_ENUM: {
        const auto* value = field_.enum_type()->FindValueByName(text);
        if (!value)
          return bad_input("", fmt::format("\"{}\" is not a value of {}", text, field_.name()),
                           suggest(text, value_names(*field_.enum_type()), "values"));
        return put(value, &Refl::SetEnum, &Refl::SetRepeatedEnum, &Refl::AddEnum);
      }
      case Field::CPPTYPE_STRING:
        return put(text, &Refl::SetString, &Refl::SetRepeatedString, &Refl::AddString);
      case Field::CPPTYPE_MESSAGE: break;
    }
    return internal_error("", fmt::format("{} cannot be set from text", field_.name()));
  }

 private:
  using Refl = pb::Reflection;

  template <class Value, class Set, class SetRepeated, class Add>
  Result<void> put(const Value& value, Set set, SetRepeated set_repeated, Add add) {
    if (index_ < 0) {
      (reflection_.*set)(&message_, &field_, value);
    } else if (index_ < reflection_.FieldSize(message_, &field_)) {
      (reflection_.*set_repeated)(&message_, &field_, index_, value);
    } else {
      (reflection_.*add)(&message_, &field_, value);
    }
    return {};
  }

  pb::Message& message_;
  const pb::Reflection& reflection_;
  const Field& field_;
  const int index_;
};

/// Walks a path and writes its value at the end. Errors have no `where`.
class OverrideWriter {
 public:
  OverrideWriter(const Override& change, PluginHost* plugins)
      : change_(change), plugins_(plugins) {}

  Result<void> write(pb::Message& message, std::size_t depth) {
    if (is_any(message.GetDescriptor())) return write_inside_any(message, depth);
    const auto& step = change_.path[depth];
    const auto* field = message.GetDescriptor()->FindFieldByName(step.field);
    if (!field)
      return bad_input(
          "", fmt::format("no field \"{}\" in {}", step.field, message.GetDescriptor()->name()),
          suggest(step.field, field_names(*message.GetDescriptor()), "fields"));
    if (field->is_map()) return write_map(message, *field, depth);
    if (field->is_repeated()) return write_repeated(message, *field, depth);
    if (step.index)
      return bad_input("", fmt::format("{} is not a list", step.field), "leave the brackets out");
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE)
      return write_message(*message.GetReflection()->MutableMessage(&message, field), *field,
                           depth);
    if (!is_last(depth)) return no_fields_inside(step.field);
    return write_scalar(message, *field, -1);
  }

 private:
  bool is_last(std::size_t depth) const { return depth + 1 == change_.path.size(); }

  static Error no_fields_inside(const std::string& name) {
    return bad_input("", name + " has no fields inside", "end the path there");
  }

  Result<void> write_scalar(pb::Message& message, const Field& field, int index) const {
    TROUPE_ASSIGN(const auto text, scalar_text(field));
    return FieldWriter(message, field, index).write(text);
  }

  /// Quotes around a string may be written, as in a file and with the same escapes, and may be left
  /// out.
  Result<std::string> scalar_text(const Field& field) const {
    const auto& text = change_.value;
    if (field.cpp_type() != Field::CPPTYPE_STRING || !is_wrapped(text, '"', '"')) return text;
    return parse_quoted(text);
  }

  Result<void> write_inside_any(pb::Message& message, std::size_t depth) {
    pb::Any any;
    any.CopyFrom(message);
    if (any.type_url().empty() || !plugins_)
      return bad_input("", "there is no plugin message to step into", "write one in the file");
    TROUPE_ASSIGN(const auto inner, unpack_plugin_message(any, *plugins_));
    TROUPE_TRY(write(*inner, depth));
    any.set_value(inner->SerializeAsString());
    message.CopyFrom(any);
    return {};
  }

  /// `target` is the message that the step at `depth` names.
  Result<void> write_message(pb::Message& target, const Field& field, std::size_t depth) {
    if (!is_last(depth)) return write(target, depth + 1);
    const auto& text = change_.value;
    if (!is_wrapped(text, '{', '}'))
      return bad_input("", fmt::format("{} is a message", field.name()),
                       fmt::format("set a field of it ({}), or give {{...}}", example(field)));
    target.Clear();
    return parse(text.substr(1, text.size() - 2), target);
  }

  Result<void> write_repeated(pb::Message& message, const Field& field, std::size_t depth) {
    const auto& step = change_.path[depth];
    const auto& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    if (!step.index) {
      if (!is_last(depth) || !is_wrapped(change_.value, '[', ']'))
        return bad_input("", fmt::format("{} is a list of {}", field.name(), size),
                         fmt::format("name an element, {0}[{1}] appends one; or give all as "
                                     "{0}=[...]",
                                     field.name(), size));
      reflection.ClearField(&message, &field);
      return parse(field.name() + ": " + change_.value, message);
    }
    const auto index = index_number(*step.index);
    if (!index || *index > size)
      return bad_input(
          "",
          fmt::format("[{}] is no element of {}, which has {}", *step.index, field.name(), size),
          fmt::format("{}[{}] appends one", field.name(), size));
    if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
      auto* element = *index == size ? reflection.AddMessage(&message, &field)
                                     : reflection.MutableRepeatedMessage(&message, &field, *index);
      return write_message(*element, field, depth);
    }
    if (!is_last(depth)) return no_fields_inside(fmt::format("{}[{}]", step.field, *index));
    return write_scalar(message, field, *index);
  }

  Result<void> write_map(pb::Message& message, const Field& field, std::size_t depth) {
    const auto& step = change_.path[depth];
    if (!step.index)
      return bad_input("", fmt::format("{} is a map", field.name()),
                       fmt::format("name a key: {}[KEY]", field.name()));
    const auto& key = *field.message_type()->map_key();
    const auto& value = *field.message_type()->map_value();
    TROUPE_ASSIGN(auto* entry, map_entry(message, field, key, *step.index));
    if (value.cpp_type() == Field::CPPTYPE_MESSAGE)
      return write_message(*entry->GetReflection()->MutableMessage(entry, &value), value, depth);
    if (!is_last(depth)) return no_fields_inside(fmt::format("{}[{}]", step.field, *step.index));
    return write_scalar(*entry, value, -1);
  }

  /// The entry with this key, a new one if there is none.
  Result<pb::Message*> map_entry(pb::Message& message, const Field& field, const Field& key,
                                 const std::string& key_text) {
    const auto& reflection = *message.GetReflection();
    std::unique_ptr<pb::Message> wanted(
        pb::MessageFactory::generated_factory()->GetPrototype(field.message_type())->New());
    TROUPE_TRY(FieldWriter(*wanted, key, -1).write(key_text));
    const auto wanted_key = print_field(*wanted, key);
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      auto* entry = reflection.MutableRepeatedMessage(&message, &field, i);
      if (print_field(*entry, key) == wanted_key) return entry;
    }
    auto* entry = reflection.AddMessage(&message, &field);
    TROUPE_TRY(FieldWriter(*entry, key, -1).write(key_text));
    return entry;
  }

  static std::string print_field(const pb::Message& message, const Field& field) {
    std::string text;
    pb::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
    return text;
  }

  static std::string example(const Field& field) {
    const auto& type = *field.message_type();
    const auto inner = is_any(&type) || type.field_count() == 0 ? "field" : type.field(0)->name();
    return fmt::format("{}.{}=...", field.name(), inner);
  }

  Result<void> parse(const std::string& text, pb::Message& target) {
    TextParse options;
    options.positions_matter = false;
    std::optional<PluginTypeFinder> finder;
    if (plugins_) options.finder = &finder.emplace(*plugins_);
    // Merged, not replaced: a list is parsed into the message that holds it.
    std::unique_ptr<pb::Message> parsed(target.New());
    TROUPE_TRY(parse_text(TextPositions(text), options, *parsed));
    target.MergeFrom(*parsed);
    return {};
  }

  const Override& change_;
  PluginHost* plugins_;
};

}  // namespace

Result<Override> parse_override(const std::string& text) {
  // A map's key may hold the sign: the first one outside of brackets separates.
  std::size_t equals = 0;
  for (bool in_brackets = false; equals < text.size(); ++equals) {
    if (text[equals] == '[') in_brackets = true;
    if (text[equals] == ']') in_brackets = false;
    if (text[equals] == '=' && !in_brackets) break;
  }
  if (equals >= text.size())
    return bad_input("--set " + text, "has no value", "write it as path=value");
  auto path = parse_field_path(text.substr(0, equals));
  if (!path) {
    auto error = std::move(path).error();
    error.where = "--set " + text;
    return error;
  }
  return Override{std::move(path).value(), text.substr(equals + 1)};
}

Result<void> apply_override(const Override& change, PluginHost* plugins,
                            google::protobuf::Message& message) {
  auto written = OverrideWriter(change, plugins).write(message, 0);
  if (!written && written.error().where.empty()) written.error().where = change.where();
  return written;
}

}  // namespace troupe
