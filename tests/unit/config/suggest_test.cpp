#include <boost/test/unit_test.hpp>

#include "config/suggest.hpp"

using troupe::suggest;

BOOST_AUTO_TEST_SUITE(config_suggest)

BOOST_AUTO_TEST_CASE(the_nearest_name_is_suggested) {
  BOOST_TEST(suggest("batchsize", {"batch_size", "micro_batch_size"}, "fields") ==
             "did you mean \"batch_size\"?");
  BOOST_TEST(suggest("micro_batchsize", {"batch_size", "micro_batch_size"}, "fields") ==
             "did you mean \"micro_batch_size\"?");
}

BOOST_AUTO_TEST_CASE(far_names_are_listed) {
  BOOST_TEST(suggest("xyz", {"alpha", "beta"}, "fields") == "fields: alpha, beta");
  BOOST_TEST(suggest("ab", {"xy"}, "fields") == "fields: xy");
  BOOST_TEST(suggest("a", {}, "fields") == "fields: none");
}

BOOST_AUTO_TEST_SUITE_END()
