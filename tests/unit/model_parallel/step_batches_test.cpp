#include <limits>

#include <boost/test/unit_test.hpp>

#include "core/step_batches.hpp"

namespace troupe::mp {
namespace {

BOOST_AUTO_TEST_SUITE(step_batches)

BOOST_AUTO_TEST_CASE(the_last_step_of_an_epoch_has_what_is_left) {
  const StepBatches batches(7, 3);
  BOOST_TEST(batches.steps_in_epoch() == 3u);
  BOOST_TEST(batches.batches_in(0).value() == 0u);
  BOOST_TEST(batches.batches_in(2).value() == 6u);
  BOOST_TEST(batches.batches_in(3).value() == 7u);
  BOOST_TEST(batches.batches_in(4).value() == 10u);
  BOOST_TEST(batches.batches_in(6).value() == 14u);
}

BOOST_AUTO_TEST_CASE(a_step_of_more_batches_than_an_epoch_has_is_the_epoch) {
  const StepBatches batches(3, 5);
  BOOST_TEST(batches.steps_in_epoch() == 1u);
  BOOST_TEST(batches.batches_in(4).value() == 12u);
}

BOOST_AUTO_TEST_CASE(data_without_an_end_has_full_steps_only) {
  const StepBatches batches(0, 4);
  BOOST_TEST(batches.steps_in_epoch() == 0u);
  BOOST_TEST(batches.batches_in(9).value() == 36u);
}

BOOST_AUTO_TEST_CASE(more_than_can_be_counted_is_nothing) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  BOOST_TEST(StepBatches(0, 1).batches_in(most).value() == most);
  BOOST_TEST(!StepBatches(0, 2).batches_in(most).has_value());
  BOOST_TEST(!StepBatches(4, 2).batches_in(most).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::mp
