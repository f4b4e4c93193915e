#include <boost/test/unit_test.hpp>

#include "transport/liveness.hpp"

namespace troupe {

using std::chrono::seconds;

BOOST_AUTO_TEST_SUITE(liveness)

BOOST_AUTO_TEST_CASE(silence_ends_with_any_sign_of_life) {
  Liveness life(seconds(1), seconds(3));
  BOOST_TEST(life.on_tick(seconds(1)));
  BOOST_TEST(life.on_tick(seconds(1)));
  life.on_sign_of_life();
  BOOST_TEST(life.on_tick(seconds(1)));
  BOOST_TEST(life.on_tick(seconds(1)));
  BOOST_TEST(!life.on_tick(seconds(1)));
}

BOOST_AUTO_TEST_CASE(time_that_this_process_missed_is_no_evidence) {
  Liveness life(seconds(1), seconds(3));
  BOOST_TEST(life.on_tick(seconds(3600)));
  BOOST_TEST((life.silence() == seconds(2)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
