#include "core/run_key.hpp"

#include <boost/test/unit_test.hpp>

namespace troupe {

BOOST_AUTO_TEST_SUITE(run_key)

BOOST_AUTO_TEST_CASE(a_new_key_differs_from_others_and_from_none) {
  auto first = RunKey::random();
  auto second = RunKey::random();
  BOOST_REQUIRE(first.ok());
  BOOST_REQUIRE(second.ok());
  BOOST_TEST((*first != *second));
  BOOST_TEST((*first != RunKey()));
}

BOOST_AUTO_TEST_CASE(a_key_is_its_sixteen_bytes) {
  const std::string bytes = "0123456789abcdef";
  auto key = RunKey::from_bytes(bytes);
  BOOST_REQUIRE(key.ok());
  BOOST_TEST(key->bytes() == bytes);
  BOOST_TEST(key->matches(bytes));
  BOOST_TEST(!key->matches("0123456789abcdeF"));
  for (const char* wrong : {"", "0123456789abcde", "0123456789abcdef0"}) {
    BOOST_TEST(!RunKey::from_bytes(wrong).ok(), wrong);
    BOOST_TEST(!key->matches(wrong), wrong);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
