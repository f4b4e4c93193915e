// GPT-2's tokenizer against its published algorithm in Python, with a vocabulary trained on a text
// of every Debian machine.
#include <boost/test/unit_test.hpp>

#include "data/gpt2_words.hpp"
#include "data/read_file.hpp"
#include "data/safetensors.hpp"
#include "data/tokenizer.hpp"
#include "parity/python.hpp"
#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

/// The Python program's files, made once.
struct Files {
  Files() {
    run_python("gpt2_tokenizer.py",
               {directory.path().string(), "/usr/share/common-licenses/GPL-3"});
  }
  std::string path(const std::string& name) const { return (directory.path() / name).string(); }
  std::string text(const std::string& name) const {
    return read_file(path(name), std::uint64_t{1} << 30).value();
  }
  std::vector<std::int64_t> numbers(const std::string& file, const std::string& name) const {
    const auto tensor = SafetensorsFile::open(path(file))->tensor(name).value();
    return {tensor.as<std::int64_t>(), tensor.as<std::int64_t>() + tensor.shape[0]};
  }

  troupe::test::TemporaryDirectory directory;
};

const Files& files() {
  static const Files made;
  return made;
}

std::unique_ptr<Tokenizer> tokenizer() {
  v1::Tokenizer config;
  config.mutable_gpt2()->set_vocab(files().path("vocab.json"));
  config.mutable_gpt2()->set_merges(files().path("merges.txt"));
  auto opened = open_tokenizer(config, "tokenizer");
  if (!opened.ok()) BOOST_FAIL(opened.error().to_string());
  return std::move(*opened);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokenizer_parity)

BOOST_AUTO_TEST_CASE(texts_have_the_tokens_of_the_published_algorithm) {
  const auto gpt2 = tokenizer();
  BOOST_TEST(gpt2->vocabulary() == 657);
  for (const std::string name : {"0", "1", "2", "3", "4", "5"}) {
    const auto text = files().text(name + ".txt");
    const auto tokens = gpt2->encode(text, name);
    BOOST_REQUIRE(tokens.ok());
    const std::vector<std::int64_t> wide(tokens->begin(), tokens->end());
    BOOST_TEST((wide == files().numbers("tokens.safetensors", name)), "text " << name);
    BOOST_TEST((gpt2->decode(wide).value() == text));
  }
}

BOOST_AUTO_TEST_CASE(characters_of_all_kinds_make_the_words_of_the_published_pattern) {
  const auto text = files().text("words.txt");
  std::vector<std::int64_t> lengths;
  const auto words = Gpt2Words::create();
  BOOST_REQUIRE(words.ok());
  BOOST_REQUIRE(words
                    ->for_each(text, "text",
                               [&](std::string_view word) {
                                 lengths.push_back(static_cast<std::int64_t>(word.size()));
                               })
                    .ok());
  const auto expected = files().numbers("words.safetensors", "lengths");
  BOOST_TEST(lengths.size() > 500000u);
  BOOST_TEST((lengths == expected));
}

BOOST_AUTO_TEST_CASE(a_text_data_set_has_these_tokens) {
  const auto expected = files().numbers("tokens.safetensors", "0");
  auto source = open(
      "text { paths: '/usr/share/common-licenses/GPL-3' sequence_length: 100 "
      "tokenizer { gpt2 { vocab: '" +
          files().path("vocab.json") + "' merges: '" + files().path("merges.txt") + "' } } }",
      options_for(Loss::cross_entropy));
  BOOST_REQUIRE_EQUAL(source->samples(), (expected.size() - 1) / 100);
  const auto all = batch(*source, 0, 0, static_cast<std::uint32_t>(source->samples()));
  for (std::size_t i = 0; i < source->samples() * 100; ++i) {
    BOOST_TEST(all.fields.at("inputs").as<std::int64_t>()[i] == expected[i]);
    BOOST_TEST(all.fields.at("targets").as<std::int64_t>()[i] == expected[i + 1]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
