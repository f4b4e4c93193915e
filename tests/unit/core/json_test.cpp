#include "troupe/json.hpp"

#include <limits>
#include <string>

#include <boost/test/unit_test.hpp>

namespace troupe {

BOOST_AUTO_TEST_SUITE(json)

BOOST_AUTO_TEST_CASE(strings_are_quoted_and_escaped) {
  BOOST_TEST(json_string("a\"b\\c\nd") == "\"a\\\"b\\\\c\\u000ad\"");
  BOOST_TEST(json_string("") == "\"\"");
  BOOST_TEST(json_string("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8E\xAD") ==
             "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8E\xAD\"");
}

BOOST_AUTO_TEST_CASE(what_is_not_utf8_is_replaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  // Alone, cut off, overlong, a surrogate, beyond the last code point.
  BOOST_TEST(json_string("a\xFFz") == "\"a" + replaced + "z\"");
  BOOST_TEST(json_string("a\x80z") == "\"a" + replaced + "z\"");
  BOOST_TEST(json_string("a\xC3") == "\"a" + replaced + "\"");
  BOOST_TEST(json_string("\xC0\xAF") == "\"" + replaced + replaced + "\"");
  BOOST_TEST(json_string("\xED\xA0\x80") == "\"" + replaced + replaced + replaced + "\"");
  BOOST_TEST(json_string("\xF4\x90\x80\x80").size() == 2 + 4 * replaced.size());
}

BOOST_AUTO_TEST_CASE(objects_and_lists_are_built_field_by_field) {
  const auto object = JsonObject()
                          .add("text", "x")
                          .add("count", std::uint64_t{18446744073709551615u})
                          .add("number", 0.1)
                          .add("infinite", std::numeric_limits<double>::infinity())
                          .add_json("list", json_array({"1", "{}"}));
  BOOST_TEST(object.text() ==
             "{\"text\": \"x\", \"count\": 18446744073709551615, \"number\": 0.1, "
             "\"infinite\": null, \"list\": [1, {}]}");
  BOOST_TEST(json_array({}) == "[]");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
