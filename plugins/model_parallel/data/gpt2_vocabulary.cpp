#include "data/gpt2_vocabulary.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "data/read_file.hpp"

namespace troupe::mp {

namespace {

constexpr std::uint64_t most_vocabulary_bytes = std::uint64_t{256} << 20;
constexpr std::int64_t most_token = INT32_MAX - 1;

/// One or two bytes of UTF-8; all characters that stand for bytes lie below U+0144.
std::string utf8_of(int character) {
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
}

/// The files write each byte as a visible character: encoder.py's bytes_to_unicode. A byte that is
/// one in Latin-1 stands for itself, the others for U+0100 and on.
std::array<std::string, 256> characters_of_bytes() {
  std::array<std::string, 256> characters;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                         (byte >= 0xAE && byte <= 0xFF);
    characters[static_cast<std::size_t>(byte)] = utf8_of(visible ? byte : next++);
  }
  return characters;
}

/// The bytes that a token as the file writes it stands for; what has another character in it is a
/// special token and stands for its own text.
std::string bytes_of_token(const std::string& token,
                           const std::map<std::string, char>& byte_of_character) {
  std::string bytes;
  for (std::size_t i = 0; i < token.size();) {
    const std::size_t length = static_cast<unsigned char>(token[i]) < 0x80 ? 1 : 2;
    const auto found = byte_of_character.find(token.substr(i, length));
    if (found == byte_of_character.end()) return token;
    bytes += found->second;
    i += length;
  }
  return bytes;
}

Result<nlohmann::json> read_json_object(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_file(path, most_vocabulary_bytes));
  try {
    auto json = nlohmann::json::parse(text);
    if (!json.is_object())
      return bad_input(path, "no JSON object of tokens and their numbers",
                       "name the vocab.json of the tokenizer");
    return json;
  } catch (const nlohmann::json::parse_error& error) {
    return bad_input(path, "no JSON from byte " + std::to_string(error.byte) + " on",
                     "name the vocab.json of the tokenizer");
  }
}

Result<std::int32_t> token_number(const nlohmann::json& value, const std::string& token,
                                  const std::string& path) {
  if (!value.is_number_integer() || value < 0 || value > most_token)
    return bad_input(path, "token \"" + token + "\" has " + value.dump() + " for a number");
  return value.get<std::int32_t>();
}

}  // namespace

Result<Gpt2Vocabulary> Gpt2Vocabulary::read(const std::string& path) {
  TROUPE_ASSIGN(const nlohmann::json json, read_json_object(path));
  const auto characters = characters_of_bytes();
  std::map<std::string, char> byte_of_character;
  for (std::size_t byte = 0; byte < characters.size(); ++byte)
    byte_of_character[characters[byte]] = static_cast<char>(byte);
  Gpt2Vocabulary vocabulary;
  for (const auto& [token, value] : json.items()) {
    TROUPE_ASSIGN(const std::int32_t number, token_number(value, token, path));
    const auto added = vocabulary.bytes.emplace(number, bytes_of_token(token, byte_of_character));
    if (!added.second)
      return bad_input(path, "two tokens have the number " + std::to_string(number));
    vocabulary.numbers.emplace(token, number);
    vocabulary.size = std::max<std::int64_t>(vocabulary.size, std::int64_t{number} + 1);
  }
  for (std::size_t byte = 0; byte < characters.size(); ++byte) {
    const auto found = vocabulary.numbers.find(characters[byte]);
    if (found == vocabulary.numbers.end())
      return bad_input(path, "no token for byte " + std::to_string(byte),
                       "only vocabularies of byte-level byte-pair encoding are supported");
    vocabulary.of_byte[byte] = found->second;
  }
  return vocabulary;
}

Result<std::vector<Gpt2Merge>> read_gpt2_merges(const std::string& path,
                                                const Gpt2Vocabulary& vocabulary) {
  TROUPE_ASSIGN(const std::string text, read_file(path, most_vocabulary_bytes));
  std::vector<Gpt2Merge> merges;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || (number == 1 && line.rfind("#version", 0) == 0)) continue;
    const std::string where = path + ":" + std::to_string(number);
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      return bad_input(where, "not two tokens with a space between them",
                       "name the merges.txt of the tokenizer");
    const std::string left = line.substr(0, space);
    const std::string right = line.substr(space + 1);
    std::array<std::int32_t, 3> tokens;
    std::size_t i = 0;
    for (const auto& token : {left, right, left + right}) {
      const auto found = vocabulary.numbers.find(token);
      if (found == vocabulary.numbers.end())
        return bad_input(where, "token \"" + token + "\" is not in the vocabulary",
                         "take vocab.json and merges.txt from the same tokenizer");
      tokens[i++] = found->second;
    }
    merges.push_back({tokens[0], tokens[1], tokens[2]});
  }
  return merges;
}

}  // namespace troupe::mp
