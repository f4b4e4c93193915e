#include <boost/test/unit_test.hpp>

#include "config/text.hpp"
#include "troupe/runtime/v1/node.pb.h"

using troupe::TextPositions;

BOOST_AUTO_TEST_SUITE(config_text)

BOOST_AUTO_TEST_CASE(positions_count_from_one_and_a_tab_is_one_column) {
  const TextPositions text("ab\n\t\tcd\n");
  BOOST_TEST(text.describe(0) == "1:1");
  BOOST_TEST(text.describe(2) == "1:3");
  BOOST_TEST(text.describe(3) == "2:1");
  BOOST_TEST(text.describe(text.offset(1, 16)) == "2:3");
  BOOST_TEST(text.describe(text.offset(1, 17)) == "2:4");
}

BOOST_AUTO_TEST_CASE(positions_outside_of_the_text_are_its_ends) {
  const TextPositions text("ab");
  BOOST_TEST(text.offset(-1, 0) == 0u);
  BOOST_TEST(text.offset(9, 0) == 2u);
  BOOST_TEST(text.offset(0, 9) == 2u);
}

BOOST_AUTO_TEST_CASE(a_name_is_found_where_it_is_a_word) {
  troupe::runtime::v1::Node node;
  troupe::TextParse options;
  options.name = "f";
  const auto parsed =
      troupe::parse_text(TextPositions("name: \"ports\" # xports\nports\n  : 7"), options, node);
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.error().to_string() ==
             "f:2:1: no field \"ports\" in Node; did you mean \"port\"?");
}

BOOST_AUTO_TEST_CASE(an_unfinished_text_is_an_error) {
  troupe::runtime::v1::Node node;
  troupe::TextParse options;
  options.name = "f";
  const auto parsed = troupe::parse_text(TextPositions("environment {\n"), options, node);
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.error().where == "f:2:1");
}

BOOST_AUTO_TEST_CASE(quoted_strings_have_the_escapes_of_a_file) {
  const auto quoted = troupe::parse_quoted("\"a\\\"b\"");
  BOOST_REQUIRE(quoted.ok());
  BOOST_TEST(*quoted == "a\"b");
  for (const char* wrong : {"\"a\"b\"", "\"a\\\"", "\"a\" \"b\""})
    BOOST_TEST(!troupe::parse_quoted(wrong).ok(), wrong);
}

BOOST_AUTO_TEST_SUITE_END()
