#include <boost/test/unit_test.hpp>
#include <cstdio>

#include "data/gpt2_words.hpp"
#include "data/tokenizer.hpp"
#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;
using troupe::test::TemporaryDirectory;

namespace {

/// The token of each byte as JSON writes it: visible ASCII and Latin-1 as it is, the other bytes as
/// U+0100, U+0101, ... in their order.
std::string byte_token(int byte) {
  static const std::vector<int> characters = [] {
    std::vector<int> result;
    int next = 0x100;
    for (int i = 0; i < 256; ++i)
      result.push_back((i > 32 && i < 127) || (i > 160 && i != 173) ? i : next++);
    return result;
  }();
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", characters[static_cast<std::size_t>(byte)]);
  return text;
}

/// A vocabulary of the 256 bytes, token = byte, and further tokens from 256 on.
std::string vocabulary(const std::vector<std::string>& further) {
  std::string json = "{";
  for (int i = 0; i < 256; ++i) json += "\"" + byte_token(i) + "\": " + std::to_string(i) + ", ";
  int number = 256;
  for (const auto& token : further) json += "\"" + token + "\": " + std::to_string(number++) + ", ";
  json.resize(json.size() - 2);
  return json + "}";
}

/// Files of a tokenizer.
class TokenizerFiles {
 public:
  TokenizerFiles(const std::string& vocab, const std::string& merges)
      : vocab_(directory_.write("vocab.json", vocab)),
        merges_(directory_.write("merges.txt", merges)) {}

  troupe::Result<std::unique_ptr<Tokenizer>> open() const {
    v1::Tokenizer config;
    config.mutable_gpt2()->set_vocab(vocab_);
    config.mutable_gpt2()->set_merges(merges_);
    return open_tokenizer(config, "tokenizer");
  }

  void expect_error(const std::string& where, const std::string& what) const {
    const auto tokenizer = open();
    BOOST_REQUIRE(!tokenizer.ok());
    test::expect_error(tokenizer.error(), where, what);
  }

  const std::string& vocab() const { return vocab_; }
  const std::string& merges() const { return merges_; }

 private:
  TemporaryDirectory directory_;
  std::string vocab_;
  std::string merges_;
};

using Tokens = std::vector<std::int32_t>;

Tokens encode(const TokenizerFiles& files, const std::string& text) {
  const auto tokenizer = files.open();
  if (!tokenizer.ok()) BOOST_FAIL(tokenizer.error().to_string());
  const auto tokens = (*tokenizer)->encode(text, "text");
  if (!tokens.ok()) BOOST_FAIL(tokens.error().to_string());
  const auto decoded =
      (*tokenizer)->decode(std::vector<std::int64_t>(tokens->begin(), tokens->end()));
  BOOST_TEST(decoded.value() == text);
  return *tokens;
}

/// "low", "lower" and their pieces; U+0120 stands for a space.
const TokenizerFiles low(vocabulary({"lo", "low", "er", "\\u0120low", "aa", "<|endoftext|>",
                                     "a b"}),
                         "#version: 0.2\nl o\nlo w\ne r\n\xC4\xA0 low\na a\n");

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  const auto result = Gpt2Words::create()->for_each(
      text, "text", [&](std::string_view word) { words.emplace_back(word); });
  BOOST_REQUIRE(result.ok());
  return words;
}

using Words = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(gpt2_tokenizer)

BOOST_AUTO_TEST_CASE(words_follow_the_published_pattern) {
  BOOST_TEST((words_of("It's  42 dogs' tails,  we'll see!\n\n x") ==
              Words{"It", "'s", " ", " 42", " dogs", "'", " tails", ",", " ", " we", "'ll", " see",
                    "!", "\n\n", " x"}));
  BOOST_TEST((words_of("\xC3\xA9t\xC3\xA9\xC2\xB2\xE4\xB8\xAD \xE2\x82\xAC 9") ==
              Words{"\xC3\xA9t\xC3\xA9", "\xC2\xB2", "\xE4\xB8\xAD", " \xE2\x82\xAC", " 9"}));
  BOOST_TEST((words_of("IT'S a   ") == Words{"IT", "'", "S", " a", "   "}));
  BOOST_TEST(words_of("").empty());
}

BOOST_AUTO_TEST_CASE(a_long_word_is_one_word) {
  const std::string letters(3 << 20, 'x');
  const std::string spaces(3 << 20, ' ');
  const auto words = words_of(letters + spaces + letters);
  BOOST_REQUIRE_EQUAL(words.size(), 3u);
  BOOST_TEST((words[0] == letters));
  BOOST_TEST((words[1] == spaces.substr(1)));
}

BOOST_AUTO_TEST_CASE(the_pair_listed_first_is_joined_first_and_everywhere) {
  BOOST_TEST((encode(low, "low") == Tokens{257}));
  BOOST_TEST((encode(low, "lower") == Tokens{257, 258}));
  BOOST_TEST((encode(low, "low low") == Tokens{257, 259}));
  // The space is a word's own: "x low" has the word " low".
  BOOST_TEST((encode(low, "x lowlo") == Tokens{'x', 259, 256}));
  // From left to right, without overlap.
  BOOST_TEST((encode(low, "aaaaa") == Tokens{260, 260, 'a'}));
  BOOST_TEST((encode(low, "wol") == Tokens{'w', 'o', 'l'}));
  BOOST_TEST(encode(low, "").empty());
  // A pair may wait for one that is listed after it.
  const TokenizerFiles late(vocabulary({"abc", "bc"}), "a bc\nb c\n");
  BOOST_TEST((encode(late, "abcab") == Tokens{256, 'a', 'b'}));
}

BOOST_AUTO_TEST_CASE(every_byte_of_a_character_is_a_token) {
  BOOST_TEST((encode(low, "\xE4\xB8\xAD\n") == Tokens{0xE4, 0xB8, 0xAD, '\n'}));
  BOOST_TEST((encode(low, std::string("\0\x7F", 2)) == Tokens{0, 0x7F}));
}

BOOST_AUTO_TEST_CASE(long_words_take_their_time_only_once) {
  // 2 MiB without a border: 20 rounds, each over half as many tokens.
  std::vector<std::string> tokens;
  std::string merges;
  for (int i = 0; i < 10; ++i) {
    merges += std::string(1 << i, 'a') + " " + std::string(1 << i, 'a') + "\n";
    tokens.emplace_back(std::size_t{2} << i, 'a');
  }
  const TokenizerFiles doubling(vocabulary(tokens), merges);
  const auto result = encode(doubling, std::string(2 << 20, 'a'));
  BOOST_TEST(result.size() == 2048u);
  BOOST_TEST(result.front() == 265);
}

BOOST_AUTO_TEST_CASE(tokens_decode_to_bytes_whatever_their_order) {
  const auto tokenizer = low.open();
  BOOST_REQUIRE(tokenizer.ok());
  BOOST_TEST((*tokenizer)->vocabulary() == 263);
  BOOST_TEST((*tokenizer)->decode({259, 258, 0xB8}).value() == " lower\xB8");
  // Special tokens stand for their text, and no text for them.
  BOOST_TEST((*tokenizer)->decode({261, 262}).value() == "<|endoftext|>a b");
  BOOST_TEST(encode(low, "<|endoftext|>").size() > 1u);
  expect_error((*tokenizer)->decode({263}).error(), "tokens", "token 263 is not in the vocabulary");
  expect_error((*tokenizer)->decode({-1}).error(), "tokens", "token -1");
  expect_error((*tokenizer)->decode({std::int64_t{1} << 32}).error(), "tokens", "4294967296");
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf_8_is_named_with_its_place) {
  const auto tokenizer = low.open();
  BOOST_REQUIRE(tokenizer.ok());
  for (const std::string bad : {"\xFF", "\xC3", "\xE4\xB8 ", "\xED\xA0\x80"})
    expect_error((*tokenizer)->encode("low \xC3\xA9" + bad, "file").error(), "file",
                 "byte 6 is not UTF-8");
}

BOOST_AUTO_TEST_CASE(damaged_files_are_named_with_their_place) {
  const auto good = vocabulary({"lo"});
  const auto bad_vocabulary = [&](const std::string& json, const std::string& what) {
    const TokenizerFiles files(json, "l o\n");
    files.expect_error(files.vocab(), what);
  };
  bad_vocabulary("", "no JSON from byte");
  bad_vocabulary(good.substr(0, good.size() / 2), "no JSON from byte");
  bad_vocabulary("[1, 2]", "no JSON object");
  bad_vocabulary("{}", "no token for byte 0");
  bad_vocabulary(R"({"a": "1"})", "token \"a\" has \"1\" for a number");
  bad_vocabulary(R"({"a": -1})", "has -1 for a number");
  bad_vocabulary(R"({"a": 1.5})", "has 1.5 for a number");
  bad_vocabulary(R"({"a": 2147483647})", "for a number");
  bad_vocabulary(R"({"a": 7, "b": 7})", "two tokens have the number 7");
  const auto bad_merges = [&](const std::string& merges, const std::string& line,
                              const std::string& what) {
    const TokenizerFiles files(good, merges);
    files.expect_error(files.merges() + line, what);
  };
  bad_merges("#version: 0.2\nl o\nlo\n", ":3", "not two tokens");
  bad_merges("l o w\n", ":1", "not two tokens");
  bad_merges("l o\n\nlo w\n", ":3", "token \"low\" is not in the vocabulary");
  const TokenizerFiles files(good, "l o");
  std::filesystem::remove(files.merges());
  files.expect_error(files.merges(), "cannot open");
  BOOST_TEST(TokenizerFiles(good, "l o\r\n").open().ok());
}

BOOST_AUTO_TEST_CASE(text_becomes_windows_of_its_tokens) {
  const TemporaryDirectory directory;
  // "é" is two bytes; half of the 12 bytes ends inside of it.
  const auto file = directory.write("t", "low l\xC3\xA9 aaaa");
  const auto text = [&](const std::string& more) {
    return "text { paths: '" + file.string() + "' sequence_length: 1 tokenizer { gpt2 { vocab: '" +
           low.vocab() + "' merges: '" + low.merges() + "' } } " + more + " }";
  };
  const auto tokens = [&](const std::string& more, const std::string& field) {
    auto source = open(text(more), options_for(Loss::cross_entropy));
    const auto all = batch(*source, 0, 0, static_cast<std::uint32_t>(source->samples()));
    BOOST_TEST((all.fields.at(field).shape[1] == 1));
    const auto* first = all.fields.at(field).as<std::int64_t>();
    return std::vector<std::int64_t>(first, first + all.samples);
  };
  using Row = std::vector<std::int64_t>;
  BOOST_TEST((tokens("", "inputs") == Row{257, ' ', 'l', 0xC3, 0xA9, ' ', 260}));
  BOOST_TEST((tokens("", "targets") == Row{' ', 'l', 0xC3, 0xA9, ' ', 260, 260}));
  const std::string half = "held_out_bytes { begin: 6 end: 12 } ";
  BOOST_TEST((tokens(half + "part: PART_TRAIN", "inputs") == Row{257, ' ', 'l', 0xC3}));
  BOOST_TEST((tokens(half + "part: PART_HELD_OUT", "inputs") == Row{' ', 260}));
  std::filesystem::resize_file(file, 6);
  expect_error(text(""), options_for(Loss::cross_entropy), file.string(), "byte 5 is not UTF-8");
}

BOOST_AUTO_TEST_SUITE_END()
