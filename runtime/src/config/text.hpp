#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "config/plugin_message.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// A text with positions as editors count them: lines and columns from 1, a tab is one column.
/// The parser counts from 0 and advances a tab to the next multiple of eight.
class TextPositions {
 public:
  explicit TextPositions(std::string text);

  const std::string& text() const { return text_; }

  /// Offset in the text of a position of the parser.
  std::size_t offset(int parser_line, int parser_column) const;

  /// `line:column` of an offset.
  std::string describe(std::size_t offset) const;

 private:
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

/// The whole content of a file; errors are bad_input with the file as `where`.
Result<std::string> read_config_file(const std::filesystem::path& file);

/// Parses `text` into `message`. Unknown fields and types are errors; `where` of an error is
/// `name:line:column`, or just `name` when `positions_matter` is false (one-line values). `tree`,
/// where given, receives the positions of all fields; `finder` resolves Any messages.
struct TextParse {
  std::string name;
  bool positions_matter = true;
  google::protobuf::TextFormat::ParseInfoTree* tree = nullptr;
  const PluginTypeFinder* finder = nullptr;
};
Result<void> parse_text(const TextPositions& text, const TextParse& options,
                        google::protobuf::Message& message);

/// The value of one string in quotes, with its escapes (`"a\"b"`). Error (bad_input, without a
/// `where`): it is not exactly one such string.
Result<std::string> parse_quoted(const std::string& text);

}  // namespace troupe
