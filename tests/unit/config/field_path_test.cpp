#include <string>

#include <boost/test/unit_test.hpp>

#include "config/field_path.hpp"

namespace {

troupe::FieldPath path(const std::string& text) {
  auto parsed = troupe::parse_field_path(text);
  BOOST_REQUIRE(parsed.ok());
  return std::move(parsed).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(field_path)

BOOST_AUTO_TEST_CASE(a_path_is_taken_apart_and_printed_as_it_was) {
  const auto parsed = path("plugin.stages[1].map[a.b=c].x");
  BOOST_REQUIRE(parsed.size() == 4u);
  BOOST_TEST(parsed[1].field == "stages");
  BOOST_TEST(parsed[1].index.value() == "1");
  BOOST_TEST(parsed[2].index.value() == "a.b=c");
  BOOST_TEST(!parsed[3].index.has_value());
  BOOST_TEST(troupe::to_string(parsed) == "plugin.stages[1].map[a.b=c].x");
}

BOOST_AUTO_TEST_CASE(what_is_no_path_is_refused) {
  for (const auto* text : {"", ".", "a.", ".a", "a..b", "a[", "a[]", "[0]", "a[0]b", "a[0]]"})
    BOOST_TEST(!troupe::parse_field_path(text).ok(), text);
}

BOOST_AUTO_TEST_CASE(a_path_contains_itself_and_what_lies_inside) {
  BOOST_TEST(troupe::contains(path("a.b"), path("a.b")));
  BOOST_TEST(troupe::contains(path("a.b"), path("a.b.c")));
  BOOST_TEST(troupe::contains(path("a.b"), path("a.b[2].c")));
  BOOST_TEST(!troupe::contains(path("a.b"), path("a")));
  BOOST_TEST(!troupe::contains(path("a.b[1]"), path("a.b[2]")));
  BOOST_TEST(!troupe::contains(path("a.b[1]"), path("a.b")));
  BOOST_TEST(!troupe::contains(path("a.b"), path("a.bc")));
}

BOOST_AUTO_TEST_CASE(an_index_is_a_whole_number) {
  BOOST_TEST(troupe::index_number("12").value() == 12);
  for (const auto* text : {"", "-1", "1x", "x", "99999999999"})
    BOOST_TEST(!troupe::index_number(text).has_value(), text);
}

BOOST_AUTO_TEST_SUITE_END()
