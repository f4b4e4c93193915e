#include <boost/test/unit_test.hpp>

#include "data/tokenizer.hpp"
#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;
using troupe::test::TemporaryDirectory;

namespace {

const auto cross_entropy = options_for(Loss::cross_entropy);

std::string text_data(const std::vector<std::filesystem::path>& paths, const std::string& more,
                      const std::string& tokenizer = "bytes {}") {
  std::string text = "text { tokenizer { " + tokenizer + " } " + more;
  for (const auto& path : paths) text += " paths: '" + path.string() + "'";
  return text + " } ";
}

/// The rows of a field as text, each byte a token.
std::vector<std::string> rows_of(const Batch& batch, const std::string& field) {
  const HostTensor& tensor = batch.fields.at(field);
  BOOST_TEST((tensor.dtype == v1::DTYPE_INT64));
  std::vector<std::string> rows(batch.samples);
  const auto length = static_cast<std::size_t>(tensor.shape[1]);
  for (std::size_t i = 0; i < rows.size() * length; ++i)
    rows[i / length] += static_cast<char>(tensor.as<std::int64_t>()[i]);
  return rows;
}

using Rows = std::vector<std::string>;

Rows all_inputs(const std::string& text) {
  auto source = open(text, cross_entropy);
  return rows_of(batch(*source, 0, 0, static_cast<std::uint32_t>(source->samples())), "inputs");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(text_data_sets)

BOOST_AUTO_TEST_CASE(text_counts_how_often_each_token_is_a_target) {
  const TemporaryDirectory files;
  const auto path = files.path() / "text";
  std::ofstream(path) << "abcabbx";
  const auto counts_of = [&](const std::string& more) {
    auto counts = open(text_data({path}, more), cross_entropy)->target_counts();
    BOOST_REQUIRE(counts.has_value());
    BOOST_TEST(counts->size() == 256u);
    return std::vector<std::uint64_t>{counts->at('a'), counts->at('b'), counts->at('c'),
                                      counts->at('x')};
  };
  // Windows "abc" to "bca" and "abb" to "bbx".
  BOOST_TEST(counts_of("sequence_length: 3") == (std::vector<std::uint64_t>{1, 3, 1, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(counts_of("sequence_length: 6") == (std::vector<std::uint64_t>{1, 3, 1, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(counts_of("sequence_length: 2 stride: 1") == (std::vector<std::uint64_t>{2, 5, 2, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(targets_are_the_inputs_shifted_by_one) {
  const TemporaryDirectory directory;
  const auto file = directory.write("t", std::string("abcdefghij\xFF", 11));
  auto source = open(text_data({file}, "sequence_length: 3"), cross_entropy);
  // The last byte is no window's input: a window needs its targets.
  BOOST_TEST(source->samples() == 3u);
  const auto all = batch(*source, 0, 0, 3);
  BOOST_TEST((rows_of(all, "inputs") == Rows{"abc", "def", "ghi"}));
  BOOST_TEST((rows_of(all, "targets") == Rows{"bcd", "efg", "hij"}));
  auto predict = open(text_data({file}, "sequence_length: 10"), options_for(Loss::none));
  const auto one = batch(*predict, 0, 0, 4);
  BOOST_TEST(one.samples == 1u);
  BOOST_TEST(one.fields.size() == 1u);
  // Bytes are not signed.
  auto high = open(text_data({file}, "sequence_length: 10"), cross_entropy);
  BOOST_TEST(batch(*high, 0, 0, 1).fields.at("targets").as<std::int64_t>()[9] == 255);
}

BOOST_AUTO_TEST_CASE(windows_begin_a_stride_apart_and_stay_within_a_file) {
  const TemporaryDirectory directory;
  const auto first = directory.write("1", "abcdef");
  const auto second = directory.write("2", "xy");
  const auto third = directory.write("3", "12345");
  const auto files = std::vector<std::filesystem::path>{first, second, third};
  BOOST_TEST((all_inputs(text_data(files, "sequence_length: 3 stride: 1")) ==
              Rows{"abc", "bcd", "cde", "123", "234"}));
  BOOST_TEST((all_inputs(text_data(files, "sequence_length: 1 stride: 2")) ==
              Rows{"a", "c", "e", "x", "1", "3"}));
}

BOOST_AUTO_TEST_CASE(batches_depend_on_their_arguments_only) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i);
  const auto file = directory.write("t", text);
  const auto config = text_data({file}, "sequence_length: 4 stride: 3") + "shuffle: true";
  auto a = open(config, cross_entropy);
  auto b = open(config, cross_entropy);
  const auto late = batch(*a, 1, 4, 5).fields.at("inputs");
  batch(*b, 0, 0, 5);
  BOOST_TEST(same_bytes(late, batch(*b, 1, 4, 5).fields.at("inputs")));
  BOOST_TEST(!same_bytes(late, batch(*b, 2, 4, 5).fields.at("inputs")));
}

BOOST_AUTO_TEST_CASE(held_out_text_is_never_trained_on) {
  const TemporaryDirectory directory;
  const auto first = directory.write("1", "abcdefgh");
  const auto second = directory.write("2", "ijklmnopqrst");
  const auto files = std::vector<std::filesystem::path>{first, second};
  const auto both = [&](const std::string& held_out) {
    const auto base = "sequence_length: 1 stride: 1 " + held_out;
    return std::pair(all_inputs(text_data(files, base + " part: PART_TRAIN")),
                     all_inputs(text_data(files, base + " part: PART_HELD_OUT")));
  };
  // A quarter of 20 bytes; each part's last byte is a target only.
  const auto [train, held_out] = both("held_out_fraction: 0.25");
  BOOST_TEST((train == Rows{"a", "b", "c", "d", "e", "f", "g", "i", "j", "k", "l", "m", "n"}));
  BOOST_TEST((held_out == Rows{"p", "q", "r", "s"}));
  // Across the border of the files, with text on both sides.
  const auto [around, inside] = both("held_out_bytes { begin: 5 end: 11 }");
  BOOST_TEST((around == Rows{"a", "b", "c", "d", "l", "m", "n", "o", "p", "q", "r", "s"}));
  BOOST_TEST((inside == Rows{"f", "g", "i", "j"}));
  // No byte is a target of one side and an input or target of the other.
  auto source = open(text_data(files,
                               "sequence_length: 1 stride: 1 held_out_fraction: 0.25 "
                               "part: PART_TRAIN"),
                     cross_entropy);
  for (const auto& target : rows_of(batch(*source, 0, 0, 13), "targets")) BOOST_TEST(target < "p");
}

BOOST_AUTO_TEST_CASE(text_configs_and_files_are_checked) {
  const TemporaryDirectory directory;
  const auto file = directory.write("t", "abcdef");
  const auto empty = directory.write("e", "");
  const auto expect = [&](const std::string& more, const std::string& field,
                          const std::string& what) {
    expect_error(text_data({file}, more), cross_entropy, "data.text." + field, what);
  };
  expect("", "sequence_length", "no length");
  expect("sequence_length: 6", "sequence_length", "no part of the text has 7 tokens");
  expect("sequence_length: 2 held_out_fraction: 0.5", "part", "PART_TRAIN or PART_HELD_OUT");
  expect("sequence_length: 2 part: PART_TRAIN", "part", "no part of the text is held out");
  expect("sequence_length: 2 part: PART_TRAIN held_out_fraction: 1", "held_out_fraction",
         "between 0 and 1");
  expect("sequence_length: 2 part: PART_TRAIN held_out_fraction: nan", "held_out_fraction",
         "between 0 and 1");
  expect("sequence_length: 2 part: PART_TRAIN held_out_bytes { begin: 3 end: 3 }", "held_out_bytes",
         "bytes 3 to 3 of 6");
  expect("sequence_length: 2 part: PART_TRAIN held_out_bytes { begin: 3 end: 7 }", "held_out_bytes",
         "within the files");
  expect("sequence_length: 1 part: PART_HELD_OUT held_out_fraction: 0.01", "sequence_length",
         "no part of the text");
  expect_error(text_data({}, "sequence_length: 2"), cross_entropy, "data.text.paths", "no files");
  expect_error(text_data({file, empty}, "sequence_length: 2"), cross_entropy, empty.string(),
               "an empty file");
  expect_error(text_data({"/nonexistent"}, "sequence_length: 2"), cross_entropy, "/nonexistent",
               "cannot open");
  expect_error(text_data({directory.path()}, "sequence_length: 2"), cross_entropy,
               directory.path().string(), "not a regular file");
  expect_error(text_data({file}, "sequence_length: 2", ""), cross_entropy, "data.text.tokenizer",
               "write bytes or gpt2");
  expect_error(text_data({file}, "sequence_length: 2"), options_for(Loss::mse), "data.text",
               "write the loss cross_entropy");
}

BOOST_AUTO_TEST_CASE(the_tokenizer_of_bytes_goes_both_ways) {
  v1::Tokenizer config;
  config.mutable_bytes();
  const auto tokenizer = open_tokenizer(config, "tokenizer");
  BOOST_REQUIRE(tokenizer.ok());
  BOOST_TEST((*tokenizer)->vocabulary() == 256);
  const auto tokens = (*tokenizer)->encode(std::string_view("a\0\xFF", 3), "text");
  BOOST_TEST((*tokens == std::vector<std::int32_t>{97, 0, 255}));
  BOOST_TEST(((*tokenizer)->decode({97, 0, 255}).value() == std::string("a\0\xFF", 3)));
  expect_error((*tokenizer)->decode({256}).error(), "tokens", "token 256 is no byte");
  expect_error((*tokenizer)->decode({-1}).error(), "tokens", "token -1 is no byte");
}

BOOST_AUTO_TEST_SUITE_END()
