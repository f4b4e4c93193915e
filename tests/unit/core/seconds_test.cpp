#include "core/seconds.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

namespace troupe {

using std::chrono::milliseconds;

BOOST_AUTO_TEST_SUITE(seconds)

BOOST_AUTO_TEST_CASE(numbers_become_durations) {
  BOOST_TEST((to_milliseconds(1.5, milliseconds(7)) == milliseconds(1500)));
  BOOST_TEST((to_duration(1e-6, milliseconds(7)) == std::chrono::microseconds(1)));
}

BOOST_AUTO_TEST_CASE(what_is_not_above_zero_means_the_other_value) {
  for (const double value : {0.0, -1.0, -1e300, std::numeric_limits<double>::quiet_NaN(),
                             -std::numeric_limits<double>::infinity()})
    BOOST_TEST((to_milliseconds(value, milliseconds(7)) == milliseconds(7)), value);
}

BOOST_AUTO_TEST_CASE(nothing_is_longer_than_a_year) {
  for (const double value : {1e9, 1e300, std::numeric_limits<double>::infinity()}) {
    BOOST_TEST((to_milliseconds(value, {}) == std::chrono::hours(24 * 365)), value);
    BOOST_TEST((to_duration(value, {}) == std::chrono::hours(24 * 365)), value);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
