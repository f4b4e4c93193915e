#include <boost/test/unit_test.hpp>

#include "core/batch_cut.hpp"

namespace troupe::mp {
namespace {

BOOST_AUTO_TEST_SUITE(batch_cut)

BOOST_AUTO_TEST_CASE(an_uneven_batch_ends_with_a_smaller_micro_batch) {
  const BatchCut cut(8, 8, 3);
  BOOST_TEST(cut.batches() == 1u);
  BOOST_TEST(cut.micro_batches() == 3u);
  BOOST_TEST(cut.rows_of(0).begin == 0u);
  BOOST_TEST(cut.rows_of(1).end == 6u);
  BOOST_TEST(cut.rows_of(2).begin == 6u);
  BOOST_TEST(cut.rows_of(2).size() == 2u);
  BOOST_TEST(cut.weight_of(0) == 3.0 / 8);
  BOOST_TEST(cut.weight_of(2) == 2.0 / 8);
}

BOOST_AUTO_TEST_CASE(a_run_of_several_batches_is_counted_through) {
  const BatchCut cut(20, 8, 3);  // batches of 8, 8, 4
  BOOST_TEST(cut.batches() == 3u);
  BOOST_TEST(cut.micro_batches() == 8u);
  BOOST_TEST(cut.batch_of(5) == 1u);
  BOOST_TEST(cut.rows_of(5).size() == 2u);
  BOOST_TEST(cut.batch_of(6) == 2u);
  BOOST_TEST(cut.rows_of(6).size() == 3u);
  BOOST_TEST(cut.rows_of(7).size() == 1u);
  double weights = 0;
  for (std::uint64_t i = 0; i < cut.micro_batches(); ++i) weights += cut.weight_of(i);
  BOOST_TEST(weights == 1.0, boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(micro_batches_larger_than_the_batch_are_the_batch) {
  const BatchCut cut(20, 8, 100);
  BOOST_TEST(cut.micro_batches() == 3u);
  BOOST_TEST(cut.rows_of(0).size() == 8u);
  BOOST_TEST(cut.rows_of(2).size() == 4u);
}

BOOST_AUTO_TEST_CASE(what_counts_weighs_however_many_samples_there_are) {
  RunCounts counts;
  for (const std::uint64_t counted : {3, 0, 5}) counts.add(counted);
  BOOST_TEST(counts.size() == 3u);
  BOOST_TEST(counts.counted(2) == 5u);
  BOOST_TEST(counts.weight_of(0) == 3.0 / 8);
  BOOST_TEST(counts.weight_of(1) == 0.0);
  BOOST_TEST(counts.weight_of(2) == 5.0 / 8);
}

BOOST_AUTO_TEST_CASE(where_nothing_counts_there_are_no_weights) {
  RunCounts counts;
  counts.add(0);
  BOOST_TEST(counts.weight_of(0) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::mp
