#include "core/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include "core/activation_ledger.hpp"

using namespace troupe::mp;

namespace {

std::string text(const std::vector<ScheduledOperation>& order) {
  std::string result;
  for (const auto& operation : order)
    result += (operation.backward ? "B" : "F") + std::to_string(operation.micro_batch);
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_f_one_b_alternates_after_its_warm_up) {
  const StageSchedule first(v1::SCHEDULE_ONE_F_ONE_B, 0, 3);
  const StageSchedule last(v1::SCHEDULE_ONE_F_ONE_B, 2, 3);
  BOOST_TEST(first.window(8) == 3u);
  BOOST_TEST(last.window(8) == 1u);
  BOOST_TEST(first.window(2) == 2u);
  BOOST_TEST(text(first.ideal_order(4)) == "F0F1F2B0F3B1B2B3");
  BOOST_TEST(text(last.ideal_order(3)) == "F0B0F1B1F2B2");
  BOOST_TEST(text(first.ideal_order(1)) == "F0B0");
}

BOOST_AUTO_TEST_CASE(gpipe_runs_all_forwards_first) {
  const StageSchedule gpipe(v1::SCHEDULE_GPIPE, 1, 2);
  BOOST_TEST(gpipe.window(4) == 4u);
  BOOST_TEST(gpipe.holds_whole_step());
  BOOST_TEST(!gpipe.may_backward(3, 0, 4));
  BOOST_TEST(gpipe.may_backward(4, 0, 4));
  BOOST_TEST(text(gpipe.ideal_order(2)) == "F0F1B0B1");
}

BOOST_AUTO_TEST_CASE(the_ideal_bubble_shrinks_with_micro_batches) {
  BOOST_TEST(ideal_bubble(1, 4) == 0.0);
  BOOST_TEST(ideal_bubble(4, 1) == 0.75);
  BOOST_TEST(ideal_bubble(2, 3) == 0.25);
}

BOOST_AUTO_TEST_CASE(the_ledger_counts_what_is_alive_and_its_peak) {
  ActivationLedger ledger;
  ledger.keep(10, 100);
  ledger.keep(11, 50);
  BOOST_TEST(ledger.live_bytes() == 150u);
  ledger.release(10);
  BOOST_TEST(ledger.live_bytes() == 50u);
  BOOST_TEST(ledger.live_micro_batches() == 1u);
  BOOST_TEST(ledger.peak_bytes() == 150u);
  BOOST_TEST(ledger.peak_micro_batches() == 2u);
  ledger.reset_peaks();
  BOOST_TEST(ledger.peak_bytes() == 50u);
  ledger.release(11);
  BOOST_TEST(ledger.live_bytes() == 0u);
}
