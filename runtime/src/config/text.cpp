#include "config/text.hpp"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "config/suggest.hpp"

namespace troupe {
namespace {

namespace pb = google::protobuf;

constexpr int parser_tab_width = 8;

/// Keeps the first error: the ones after it are consequences.
class FirstError final : public pb::io::ErrorCollector {
 public:
  struct Entry {
    int line;
    int column;
    std::string text;
  };

  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!entry_) entry_ = Entry{line, column, message};
  }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}

  const std::optional<Entry>& entry() const { return entry_; }

 private:
  std::optional<Entry> entry_;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The parser reports a name it does not know from behind it. Goes back to where it begins.
std::size_t begin_of_name(const std::string& text, std::size_t before, const std::string& name) {
  for (std::size_t end = before; end > 0 && end != std::string::npos;) {
    const auto at = text.rfind(name, end - 1);
    if (at == std::string::npos) break;
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const auto after = at + name.size();
    const bool ends = after >= text.size() || !is_word(text[after]);
    if (begins && ends && after <= before) return at;
    end = at;
  }
  return before;
}

/// The enums of all fields called `field` that a message of this type can hold.
void collect_enums(const pb::Descriptor& type, const std::string& field,
                   std::set<const pb::Descriptor*>& seen,
                   std::vector<const pb::EnumDescriptor*>& found) {
  if (!seen.insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* candidate = type.field(i);
    if (candidate->name() == field && candidate->enum_type())
      found.push_back(candidate->enum_type());
    if (candidate->message_type()) collect_enums(*candidate->message_type(), field, seen, found);
  }
}

std::string enum_hint(const pb::Descriptor& root, const PluginTypeFinder* finder,
                      const std::string& field, const std::string& value) {
  std::set<const pb::Descriptor*> seen;
  std::vector<const pb::EnumDescriptor*> enums;
  collect_enums(root, field, seen, enums);
  if (finder && finder->last_found()) collect_enums(*finder->last_found(), field, seen, enums);
  return enums.empty() ? "" : suggest(value, value_names(*enums.front()), "values");
}

/// An error of the parser in our words, and the name it is about when there is one.
struct Explained {
  std::string what;
  std::string hint;
  std::string name;
};

Explained explain(const std::string& message, const pb::Descriptor& root,
                  const PluginTypeFinder* finder) {
  static const std::regex unknown_field("Message type \"(.*)\" has no field named \"(.*)\"\\.");
  static const std::regex unknown_value(
      "Unknown enumeration value of \"(.*)\" for field \"(.*)\"\\.");
  static const std::regex unknown_type("Could not find type \"(.*)\" stored in .*");
  std::smatch match;
  if (std::regex_match(message, match, unknown_field)) {
    const auto name = match[2].str();
    const auto* type = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(match[1].str());
    if (!type) return {fmt::format("no field \"{}\" in {}", name, match[1].str()), "", name};
    return {fmt::format("no field \"{}\" in {}", name, type->name()),
            suggest(name, field_names(*type), "fields"), name};
  }
  if (std::regex_match(message, match, unknown_value)) {
    const auto value = match[1].str();
    const auto field = match[2].str();
    return {fmt::format("\"{}\" is not a value of {}", value, field),
            enum_hint(root, finder, field, value), value};
  }
  if (finder && finder->error() && std::regex_match(message, match, unknown_type)) {
    const auto& error = *finder->error();
    return {error.where.empty() ? error.what : error.where + ": " + error.what, error.hint,
            match[1].str()};
  }
  auto what = message;
  if (!what.empty() && what.back() == '.') what.pop_back();
  return {what, "", ""};
}

}  // namespace

TextPositions::TextPositions(std::string text) : text_(std::move(text)), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

std::size_t TextPositions::offset(int parser_line, int parser_column) const {
  if (parser_line < 0) return 0;
  if (static_cast<std::size_t>(parser_line) >= line_starts_.size()) return text_.size();
  std::size_t at = line_starts_[parser_line];
  for (int column = 0; column < parser_column && at < text_.size() && text_[at] != '\n'; ++at)
    column += text_[at] == '\t' ? parser_tab_width - column % parser_tab_width : 1;
  return at;
}

std::string TextPositions::describe(std::size_t offset) const {
  std::size_t line = 0;
  while (line + 1 < line_starts_.size() && line_starts_[line + 1] <= offset) ++line;
  return fmt::format("{}:{}", line + 1, offset - line_starts_[line] + 1);
}

Result<std::string> read_config_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return bad_input(file.string(), "no such file", "check the path");
  if (std::filesystem::is_directory(file, ignored))
    return bad_input(file.string(), "is a directory", "give the file inside it");
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  if (!stream || (stream.peek() != EOF && !(content << stream.rdbuf())))
    return bad_input(file.string(), fmt::format("cannot be read: {}", std::strerror(errno)),
                     "check its permissions");
  return std::move(content).str();
}

Result<void> parse_text(const TextPositions& text, const TextParse& options,
                        google::protobuf::Message& message) {
  pb::TextFormat::Parser parser;
  FirstError errors;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(options.tree);
  parser.SetFinder(options.finder);
  if (parser.ParseFromString(text.text(), &message)) return {};
  if (!errors.entry()) return bad_input(options.name, "is not a protobuf text");
  const auto& entry = *errors.entry();
  auto explained = explain(entry.text, *message.GetDescriptor(), options.finder);
  auto where = options.name;
  if (options.positions_matter) {
    auto at = text.offset(entry.line, entry.column);
    if (!explained.name.empty()) at = begin_of_name(text.text(), at, explained.name);
    where += ":" + text.describe(at);
  }
  return bad_input(where, explained.what, explained.hint);
}

Result<std::string> parse_quoted(const std::string& text) {
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstError errors;
  pb::io::Tokenizer tokenizer(&stream, &errors);
  tokenizer.Next();
  const auto token = tokenizer.current();
  const bool alone = token.type == pb::io::Tokenizer::TYPE_STRING && !tokenizer.Next();
  if (!alone || errors.entry())
    return bad_input("", text + " is not one string in quotes",
                     "write \\\" for a quote inside it, or leave the outer quotes out");
  std::string value;
  pb::io::Tokenizer::ParseString(token.text, &value);
  return value;
}

}  // namespace troupe
