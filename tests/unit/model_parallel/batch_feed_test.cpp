#include <boost/test/unit_test.hpp>

#include "core/batch_feed.hpp"

namespace troupe::mp {
namespace {

FeedPlan plan(std::uint64_t samples, std::uint64_t batches, std::uint64_t prefetch_bytes) {
  return {samples, 8, batches, prefetch_bytes};
}

Batch batch_of_bytes(std::size_t bytes) {
  Batch batch;
  batch.samples = 8;
  batch.fields["inputs"] = {
      v1::DTYPE_UINT8, {static_cast<std::int64_t>(bytes)}, Blob::uninitialized(bytes)};
  return batch;
}

BOOST_AUTO_TEST_SUITE(batch_feed)

BOOST_AUTO_TEST_CASE(epochs_follow_each_other_with_their_smaller_last_batch) {
  const BatchFeed feed(plan(20, 6, 0));
  BOOST_TEST((feed.ref(2) == BatchRef{0, 2}));
  BOOST_TEST((feed.ref(3) == BatchRef{1, 0}));
  BOOST_TEST(feed.samples_in(0) == 8u);
  BOOST_TEST(feed.samples_in(2) == 4u);
  BOOST_TEST(feed.samples_in(5) == 4u);
}

BOOST_AUTO_TEST_CASE(endless_data_has_one_epoch_of_full_batches) {
  const BatchFeed feed(plan(0, 1000, 0));
  BOOST_TEST((feed.ref(999) == BatchRef{0, 999}));
  BOOST_TEST(feed.samples_in(999) == 8u);
}

BOOST_AUTO_TEST_CASE(builds_ahead_within_the_budget_and_one_in_any_case) {
  BatchFeed feed(plan(0, 10, 250));
  BOOST_TEST(feed.begin_build().has_value());
  BOOST_TEST(!feed.begin_build().has_value());  // one at a time
  feed.built(batch_of_bytes(100));
  BOOST_TEST(feed.begin_build().has_value());
  feed.built(batch_of_bytes(100));
  BOOST_TEST(!feed.begin_build().has_value());  // a third would be 300 bytes
  BOOST_TEST(feed.ready_bytes() == 200u);
  feed.take();
  BOOST_TEST(feed.begin_build().has_value());

  BatchFeed tight(plan(0, 10, 1));
  BOOST_TEST(tight.begin_build().has_value());
  tight.built(batch_of_bytes(100));
  BOOST_TEST(!tight.begin_build().has_value());
  tight.take();
  BOOST_TEST(tight.begin_build().has_value());
}

BOOST_AUTO_TEST_CASE(small_batches_do_not_fill_a_large_budget) {
  BatchFeed feed(plan(0, 1000, 1 << 20));
  int ahead = 0;
  for (; feed.begin_build(); ++ahead) feed.built(batch_of_bytes(1));
  BOOST_TEST(ahead == 16);
  feed.take();
  BOOST_TEST(feed.begin_build().has_value());
}

BOOST_AUTO_TEST_CASE(what_is_taken_together_ends_with_the_epoch) {
  BatchFeed feed(plan(20, 6, 0));  // 3 batches in an epoch
  const auto take = [&] {
    BOOST_TEST(feed.begin_build().has_value());
    feed.built(batch_of_bytes(1));
    feed.take();
  };
  BOOST_TEST(feed.in_one_epoch(2) == 2u);
  BOOST_TEST(feed.in_one_epoch(5) == 3u);
  take();
  take();
  BOOST_TEST(feed.in_one_epoch(2) == 1u);
  take();
  BOOST_TEST(feed.in_one_epoch(2) == 2u);
  BOOST_TEST(BatchFeed(plan(0, 1000, 0)).in_one_epoch(7) == 7u);
}

BOOST_AUTO_TEST_CASE(stops_after_the_last_batch) {
  BatchFeed feed(plan(0, 1, 1000));
  BOOST_TEST(feed.begin_build().has_value());
  feed.built(batch_of_bytes(1));
  BOOST_TEST(!feed.begin_build().has_value());
  BOOST_TEST(feed.remaining() == 1u);
  feed.take();
  BOOST_TEST(feed.remaining() == 0u);
  BOOST_TEST(!feed.begin_build().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::mp
