#include "markdown.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "troupe/runtime/v1/options.pb.h"

namespace {

namespace pb = google::protobuf;
namespace v1 = troupe::runtime::v1;

/// The comment before a declaration, or behind it on its line, as one paragraph.
template <class Declaration>
std::string comment(const Declaration& declaration) {
  pb::SourceLocation location;
  if (!declaration.GetSourceLocation(&location)) return "";
  const auto& raw =
      location.leading_comments.empty() ? location.trailing_comments : location.leading_comments;
  std::string text;
  bool space = false;
  for (const char c : raw) {
    if (std::isspace(static_cast<unsigned char>(c))) {
      space = !text.empty();
      continue;
    }
    if (space) text += ' ';
    space = false;
    if (c == '|') text += '\\';
    text += c;
  }
  return text;
}

/// `Stage` or `SyntheticData.Mode`: the name without its package.
template <class Declaration>
std::string short_name(const Declaration& declaration) {
  const auto& package = declaration.file()->package();
  return declaration.full_name().substr(package.empty() ? 0 : package.size() + 1);
}

/// The anchor that Markdown renderers give to a heading.
std::string anchor(const std::string& heading) {
  std::string text;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == ' ') text += '-';
  }
  return text;
}

std::string range_text(const pb::FieldDescriptor& field) {
  const auto& range = field.options().GetExtension(v1::range);
  std::vector<std::string> bounds;
  if (range.has_min()) bounds.push_back(fmt::format("≥ {:.15g}", range.min()));
  if (range.has_above()) bounds.push_back(fmt::format("> {:.15g}", range.above()));
  if (range.has_max()) bounds.push_back(fmt::format("≤ {:.15g}", range.max()));
  if (range.has_below()) bounds.push_back(fmt::format("< {:.15g}", range.below()));
  if (const auto items = field.options().GetExtension(v1::min_items); items > 0)
    bounds.push_back(fmt::format("at least {} of them", items));
  return fmt::format("{}", fmt::join(bounds, ", "));
}

bool excludes_zero(const v1::Range& range) {
  return (range.has_min() && range.min() > 0) || (range.has_max() && range.max() < 0) ||
         (range.has_above() && range.above() >= 0) || (range.has_below() && range.below() <= 0);
}

/// What an absent field means.
std::string default_text(const pb::FieldDescriptor& field) {
  const auto& options = field.options();
  if (options.GetExtension(v1::required)) return "required";
  if (const auto& text = options.GetExtension(v1::default_text); !text.empty()) return text;
  if (field.is_repeated()) return options.GetExtension(v1::min_items) > 0 ? "required" : "none";
  if (field.real_containing_oneof() || field.has_presence()) return "";
  if (field.type() == pb::FieldDescriptor::TYPE_ENUM) {
    // The comment of the unspecified value says what it stands for.
    auto text = comment(*field.enum_type()->FindValueByNumber(0));
    if (!text.empty() && text.back() == '.') text.pop_back();
    return text.empty() ? "none" : fmt::format("`{}`", text);
  }
  if (excludes_zero(options.GetExtension(v1::range))) return "required";
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL: return "false";
    case pb::FieldDescriptor::CPPTYPE_STRING: return "empty";
    default: return "0";
  }
}

class Writer {
 public:
  explicit Writer(std::vector<std::string>& undocumented) : undocumented_(undocumented) {}

  void section(const Section& section) {
    text_ += fmt::format("\n## {}\n", section.title);
    const auto order = reachable(*section.root);
    for (const auto* type : order.messages) {
      if (written_.insert(type->full_name()).second) message(*type);
    }
    for (const auto* type : order.enums) {
      if (written_.insert(type->full_name()).second) enumeration(*type);
    }
  }

  std::string text() && { return std::move(text_); }

 private:
  struct Reachable {
    std::vector<const pb::Descriptor*> messages;
    std::vector<const pb::EnumDescriptor*> enums;
  };

  /// Depth first, so that what belongs to a message follows it.
  static Reachable reachable(const pb::Descriptor& root) {
    Reachable order;
    visit(root, order);
    return order;
  }

  static void visit(const pb::Descriptor& type, Reachable& order) {
    if (std::count(order.messages.begin(), order.messages.end(), &type)) return;
    order.messages.push_back(&type);
    for (int i = 0; i < type.field_count(); ++i) {
      const auto* field =
          type.field(i)->is_map() ? type.field(i)->message_type()->map_value() : type.field(i);
      if (field->enum_type() &&
          !std::count(order.enums.begin(), order.enums.end(), field->enum_type()))
        order.enums.push_back(field->enum_type());
      if (field->message_type() && field->message_type()->file()->package() != "google.protobuf")
        visit(*field->message_type(), order);
    }
  }

  template <class Declaration>
  std::string documented(const Declaration& declaration) {
    auto text = comment(declaration);
    if (text.empty()) undocumented_.push_back(declaration.full_name());
    return text;
  }

  /// Headings are unique: of two types with one name, the later is written in full.
  template <class Declaration>
  std::string heading(const Declaration& type) {
    const auto name = short_name(type);
    const auto owner = headings_.emplace(name, type.full_name()).first->second;
    return owner == type.full_name() ? name : type.full_name();
  }

  std::string single_type(const pb::FieldDescriptor& field) {
    if (field.enum_type()) return link(heading(*field.enum_type()));
    if (!field.message_type()) return field.type_name();
    if (field.message_type()->file()->package() == "google.protobuf")
      return "`[type.googleapis.com/MESSAGE] {...}`";
    return link(heading(*field.message_type()));
  }

  static std::string link(const std::string& heading) {
    return fmt::format("[{}](#{})", heading, anchor(heading));
  }

  std::string type_text(const pb::FieldDescriptor& field) {
    if (field.is_map())
      return fmt::format("map of {} to {}", single_type(*field.message_type()->map_key()),
                         single_type(*field.message_type()->map_value()));
    return (field.is_repeated() ? "list of " : "") + single_type(field);
  }

  void message(const pb::Descriptor& type) {
    text_ += fmt::format("\n### {}\n\n", heading(type));
    text_ += fmt::format("{}\n\n`{}`\n", documented(type), type.full_name());
    if (type.field_count() == 0) {
      text_ += "\nIt has no fields: write `{}`.\n";
      return;
    }
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) one_of(*type.oneof_decl(i));
    text_ += "\n| field | type | range | default | meaning |\n|---|---|---|---|---|\n";
    for (int i = 0; i < type.field_count(); ++i) {
      const auto& field = *type.field(i);
      text_ += fmt::format("| `{}` | {} | {} | {} | {} |\n", field.name(), type_text(field),
                           range_text(field), default_text(field), documented(field));
    }
  }

  void one_of(const pb::OneofDescriptor& oneof) {
    std::vector<std::string> members;
    for (int i = 0; i < oneof.field_count(); ++i)
      members.push_back(fmt::format("`{}`", oneof.field(i)->name()));
    text_ += fmt::format(
        "\n{} of {}.\n",
        oneof.options().GetExtension(v1::oneof_required) ? "Exactly one" : "At most one",
        fmt::join(members, ", "));
  }

  void enumeration(const pb::EnumDescriptor& type) {
    text_ += fmt::format("\n### {}\n", heading(type));
    if (const auto text = comment(type); !text.empty()) text_ += "\n" + text + "\n";
    text_ += "\n| value | meaning |\n|---|---|\n";
    for (int i = 0; i < type.value_count(); ++i) {
      const auto& value = *type.value(i);
      if (value.number() != 0)
        text_ += fmt::format("| `{}` | {} |\n", value.name(), documented(value));
    }
  }

  std::vector<std::string>& undocumented_;
  std::string text_;
  std::set<std::string> written_;
  std::map<std::string, std::string> headings_;
};

constexpr const char* introduction =
    R"(<!-- Generated from the .proto files by `./dev docs`; edit the comments there. -->
# Configuration

Node and job files are Protobuf text format. An unknown field, an unknown type and a value out of
its range are errors with their position. `--set path=value` overrides any field of a file:
`--set seed=7`, `--set nodes[1].address=192.0.2.7:7856` (an index equal to the size appends),
`--set nodes[0].environment[KEY]=value`; `plugin.` steps into the job's own message:
`--set plugin.batch_size=16`. Naming a member of a oneof switches it. A message is given as
`{...}`, a whole list as `[...]`.

A number, text or truth value that is absent, or written as zero, empty or false, takes its
default, unless its meaning says what zero does.
)";

}  // namespace

std::string reference_markdown(const std::vector<Section>& sections,
                               std::vector<std::string>& undocumented) {
  Writer writer(undocumented);
  for (const auto& section : sections) writer.section(section);
  return introduction + std::move(writer).text();
}
