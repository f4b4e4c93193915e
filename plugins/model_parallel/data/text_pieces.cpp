#include "data/text_pieces.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "data/mapped_file.hpp"

namespace troupe::mp {

namespace {

/// Bytes [begin, end) of all files in a row.
struct TextRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct TextFile {
  std::string path;
  Blob bytes;
  std::uint64_t begin = 0;  ///< of its first byte among those of all files
  std::uint64_t end() const { return begin + bytes.size(); }
};

Result<std::vector<TextFile>> map_text_files(const v1::TextData& config, const std::string& where) {
  if (config.paths().empty()) return bad_input(where + ".paths", "no files");
  std::vector<TextFile> files;
  std::uint64_t position = 0;
  for (const auto& path : config.paths()) {
    TROUPE_ASSIGN(Blob bytes, map_file(path));
    if (bytes.empty()) return bad_input(path, "an empty file", "take it away");
    files.push_back({path, bytes, position});
    position += bytes.size();
  }
  return files;
}

/// The next start of a character from `position` on, within the file it lies in.
std::uint64_t character_start(const std::vector<TextFile>& files, std::uint64_t position) {
  for (const auto& file : files) {
    if (position < file.begin || position >= file.end()) continue;
    const auto inside = [&] {
      return (std::to_integer<unsigned>(file.bytes.data()[position - file.begin]) & 0xC0U) == 0x80U;
    };
    while (position < file.end() && inside()) ++position;
  }
  return position;
}

/// What the config keeps from training; empty when it keeps nothing.
Result<TextRange> held_out_range(const v1::TextData& config, std::uint64_t total,
                                 const std::string& where) {
  switch (config.held_out_case()) {
    case v1::TextData::kHeldOutFraction: {
      const double fraction = config.held_out_fraction();
      if (!(fraction > 0 && fraction < 1))
        return bad_input(where + ".held_out_fraction", "not between 0 and 1");
      const auto bytes = static_cast<std::uint64_t>(fraction * static_cast<double>(total));
      return TextRange{total - std::min(bytes, total), total};
    }
    case v1::TextData::kHeldOutBytes: {
      const auto& range = config.held_out_bytes();
      if (range.begin() >= range.end() || range.end() > total)
        return bad_input(where + ".held_out_bytes",
                         "bytes " + std::to_string(range.begin()) + " to " +
                             std::to_string(range.end()) + " of " + std::to_string(total),
                         "begin before the end, and end within the files");
      return TextRange{range.begin(), range.end()};
    }
    default: return TextRange{};
  }
}

Result<void> check_part(const v1::TextData& config, const std::string& where) {
  const bool held_out = config.held_out_case() != v1::TextData::HELD_OUT_NOT_SET;
  const bool part = config.part() != v1::TextData::PART_UNSPECIFIED;
  if (held_out && !part)
    return bad_input(where + ".part", "a part of the text is held out",
                     "write PART_TRAIN or PART_HELD_OUT");
  if (part && !held_out)
    return bad_input(where + ".part", "no part of the text is held out",
                     "write held_out_fraction or held_out_bytes");
  return {};
}

/// Adds what of a file lies in the range.
void add_piece(const TextFile& file, TextRange range, std::vector<TextPiece>& pieces) {
  const std::uint64_t begin = std::max(range.begin, file.begin) - file.begin;
  const std::uint64_t end = std::min(range.end, file.end());
  if (end <= begin + file.begin) return;
  const std::uint64_t size = end - file.begin - begin;
  std::string where = file.path;
  if (size != file.bytes.size())
    where += " from byte " + std::to_string(begin) + " to " + std::to_string(begin + size);
  pieces.push_back({std::move(where), file.bytes.slice(begin, size)});
}

}  // namespace

Result<std::vector<TextPiece>> text_pieces(const v1::TextData& config, bool whole_characters,
                                           const std::string& where) {
  TROUPE_TRY(check_part(config, where));
  TROUPE_ASSIGN(const auto files, map_text_files(config, where));
  const std::uint64_t total = files.back().end();
  TROUPE_ASSIGN(TextRange held_out, held_out_range(config, total, where));
  if (whole_characters)
    held_out = {character_start(files, held_out.begin), character_start(files, held_out.end)};
  std::vector<TextRange> ranges{held_out};
  if (config.part() != v1::TextData::PART_HELD_OUT)
    ranges = {{0, held_out.begin}, {held_out.end, total}};
  std::vector<TextPiece> pieces;
  for (const auto& file : files)
    for (const auto& range : ranges) add_piece(file, range, pieces);
  return pieces;
}

}  // namespace troupe::mp
