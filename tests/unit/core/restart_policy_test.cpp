#include <boost/test/unit_test.hpp>

#include "core/restart_policy.hpp"

namespace troupe {

using std::chrono::milliseconds;
using std::chrono::seconds;

BOOST_AUTO_TEST_SUITE(restart_policy)

BOOST_AUTO_TEST_CASE(delays_double_up_to_the_longest) {
  RestartPolicy policy({5, seconds(1000), milliseconds(100), milliseconds(500)});
  BOOST_TEST((policy.on_failure(seconds(1)) == milliseconds(100)));
  BOOST_TEST((policy.on_failure(seconds(2)) == milliseconds(200)));
  BOOST_TEST((policy.on_failure(seconds(3)) == milliseconds(400)));
  BOOST_TEST((policy.on_failure(seconds(4)) == milliseconds(500)));
  BOOST_TEST((policy.on_failure(seconds(5)) == milliseconds(500)));
  BOOST_TEST(!policy.on_failure(seconds(6)).has_value());
}

BOOST_AUTO_TEST_CASE(failures_outside_the_window_are_forgotten) {
  RestartPolicy policy({2, seconds(10), milliseconds(100), seconds(1)});
  BOOST_TEST(policy.on_failure(seconds(1)).has_value());
  BOOST_TEST(policy.on_failure(seconds(2)).has_value());
  BOOST_TEST(!policy.on_failure(seconds(3)).has_value());
  BOOST_TEST((policy.on_failure(seconds(13)) == milliseconds(100)));
}

BOOST_AUTO_TEST_CASE(without_a_budget_nothing_is_restarted) {
  RestartPolicy policy({0, seconds(10), milliseconds(100), seconds(1)});
  BOOST_TEST(!policy.on_failure(seconds(1)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
