#include "transport/early_frames.hpp"

#include <boost/test/unit_test.hpp>

#include "troupe/parcel.hpp"

namespace troupe {
namespace {

Frame frame_of(const std::string& from, std::size_t bytes, std::string header = "h") {
  return {from, std::move(header), Blob::uninitialized(bytes)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(early_frames)

BOOST_AUTO_TEST_CASE(frames_are_given_back_in_their_order) {
  EarlyFrames early{LinkBounds{}};
  BOOST_TEST(early.keep(frame_of("a", 10, "1")));
  BOOST_TEST(early.keep(frame_of("b", 10, "2")));
  BOOST_TEST(early.keep(frame_of("a", 10, "3")));
  const auto frames = early.take("a");
  BOOST_REQUIRE_EQUAL(frames.size(), 2u);
  BOOST_TEST(frames[0].header == "1");
  BOOST_TEST(frames[1].header == "3");
  BOOST_TEST(early.take("a").empty());
  early.take("b");
  BOOST_TEST(early.bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(a_peer_may_use_its_whole_credit_of_every_class) {
  LinkBounds bounds;
  bounds.chunk_budget = 1 << 20;
  EarlyFrames early(bounds);
  for (int traffic = 0; traffic < traffic_class_count; ++traffic)
    for (int i = 0; i < 4; ++i) BOOST_TEST(early.keep(frame_of("a", bounds.chunk_budget / 4)));
  BOOST_TEST(early.take("a").size() == 4u * traffic_class_count);
}

BOOST_AUTO_TEST_CASE(a_peer_that_goes_beyond_loses_all_it_sent_and_others_nothing) {
  EarlyFrames early{LinkBounds{}};
  BOOST_TEST(early.keep(frame_of("b", 10)));
  const std::uint64_t before = early.bytes();
  std::size_t kept = 0;
  while (early.keep(frame_of("a", 1 << 20))) {
    ++kept;
    BOOST_REQUIRE_LE(early.bytes(), before + early.max_bytes_of_peer());
  }
  BOOST_TEST(kept > 0u);
  BOOST_TEST(early.bytes() == before);
  BOOST_TEST(early.take("b").size() == 1u);
}

BOOST_AUTO_TEST_CASE(small_frames_count_too) {
  EarlyFrames early{LinkBounds{}};
  std::uint64_t kept = 0;
  while (early.keep(frame_of("a", 0, ""))) ++kept;
  BOOST_TEST(kept * sizeof(Frame) <= early.max_bytes_of_peer());
}

BOOST_AUTO_TEST_CASE(there_are_only_so_many_peers) {
  EarlyFrames early{LinkBounds{}};
  for (std::size_t i = 0; i < EarlyFrames::max_peers; ++i)
    BOOST_TEST(early.keep(frame_of("peer " + std::to_string(i), 1)));
  const std::uint64_t before = early.bytes();
  BOOST_TEST(!early.keep(frame_of("one more", 1)));
  BOOST_TEST(early.bytes() == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
