#include "netprobe/core/link_measurement.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "netprobe/core/statistics.hpp"

namespace np = troupe::netprobe;

namespace {

np::v1::Measure plan(std::initializer_list<std::uint64_t> sizes, int rounds, int round_trips) {
  np::v1::Measure measure;
  measure.set_to("b");
  for (const auto size : sizes) measure.add_sizes(size);
  measure.set_rounds(rounds);
  measure.set_round_trips(round_trips);
  return measure;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(link_measurement)

BOOST_AUTO_TEST_CASE(the_median_is_the_middle) {
  BOOST_TEST(np::median({}) == 0.0);
  BOOST_TEST(np::median({3}) == 3.0);
  BOOST_TEST(np::median({5, 1, 3}) == 3.0);
  BOOST_TEST(np::median({4, 1, 3, 2}) == 2.5);
  BOOST_TEST(np::median({1, 1, 1e9}) == 1.0);
}

BOOST_AUTO_TEST_CASE(one_message_at_a_time_in_series_with_a_warm_up_each) {
  np::LinkMeasurement measurement(plan({1000, 5000}, 2, 3));
  std::vector<std::uint64_t> sizes;
  double now = 0;
  while (const auto ping = measurement.next(now)) {
    BOOST_TEST(ping->number == sizes.size() + 1);
    sizes.push_back(ping->bytes);
    now += 1;
    BOOST_REQUIRE(measurement.answered(ping->number, now));
  }
  const std::vector<std::uint64_t> expected = {0, 0, 0, 0, 1000, 1000, 1000, 5000, 5000, 5000};
  BOOST_TEST(sizes == expected, boost::test_tools::per_element());
  BOOST_TEST(!measurement.next(now).has_value());
}

BOOST_AUTO_TEST_CASE(times_leave_out_the_warm_up_and_half_a_round_trip) {
  np::LinkMeasurement measurement(plan({1000}, 3, 3));
  double now = 10;
  const auto exchange = [&](double seconds) {
    const auto ping = measurement.next(now);
    BOOST_REQUIRE(ping.has_value());
    now += seconds;
    measurement.answered(ping->number, now);
  };
  for (const double seconds : {100.0, 2.0, 4.0, 2.0}) exchange(seconds);
  for (const double seconds : {500.0, 9.0, 5.0, 7.0}) exchange(seconds);
  const auto link = measurement.result("a");
  BOOST_TEST(link.from() == "a");
  BOOST_TEST(link.to() == "b");
  BOOST_TEST(link.round_trip_seconds() == 2.0);
  BOOST_REQUIRE(link.transfers_size() == 1);
  BOOST_TEST(link.transfers(0).bytes() == 1000u);
  BOOST_TEST(link.transfers(0).seconds() == 6.0);
  BOOST_TEST(link.transfers(0).bytes_per_second() == 1000.0 / 6.0);
}

BOOST_AUTO_TEST_CASE(answers_to_other_messages_are_ignored) {
  np::LinkMeasurement measurement(plan({}, 1, 1));
  BOOST_TEST(!measurement.answered(0, 1));
  const auto first = measurement.next(0);
  BOOST_TEST(!measurement.answered(first->number + 1, 1));
  BOOST_TEST(measurement.answered(first->number, 1));
  BOOST_TEST(!measurement.answered(first->number, 2));
}

BOOST_AUTO_TEST_CASE(a_transfer_faster_than_half_a_round_trip_stays_positive) {
  np::LinkMeasurement measurement(plan({8}, 1, 1));
  double now = 0;
  for (const double seconds : {10.0, 10.0, 1.0, 1.0}) {
    const auto ping = measurement.next(now);
    now += seconds;
    measurement.answered(ping->number, now);
  }
  BOOST_TEST(measurement.result("a").transfers(0).seconds() == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
