#include <cstdint>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include "two_systems.hpp"

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(large_payload)

BOOST_AUTO_TEST_CASE(a_payload_over_two_gibibytes_arrives_whole) {
  constexpr std::uint64_t size = (2ULL << 30) + (100ULL << 20) + 13;
  constexpr std::uint64_t stride = 65'537;
  RealNode a("a");
  RealNode b("b");
  BOOST_REQUIRE(connect(a, b) != 0);
  b.bind_inbox("inbox");
  {
    Blob payload = Blob::uninitialized(size);
    std::memset(payload.mutable_data(), 0x5a, size);
    for (std::uint64_t at = 0; at + 8 <= size; at += stride)
      std::memcpy(payload.mutable_data() + at, &at, 8);
    a.mailer.send(
        Parcel{{"b", "inbox"}, "test", TrafficClass::state, 0, "large", std::move(payload)});
  }
  const auto deliveries = b.deliveries.wait_for(1);
  BOOST_REQUIRE_EQUAL(deliveries.size(), 1u);
  const Blob& received = deliveries[0].payload;
  BOOST_REQUIRE_EQUAL(received.size(), size);
  std::uint64_t wrong = 0;
  for (std::uint64_t at = 0; at + 8 <= size; at += stride) {
    std::uint64_t found = 0;
    std::memcpy(&found, received.data() + at, 8);
    if (found != at) ++wrong;
    if (at + 8 < size && received.data()[at + 8] != std::byte{0x5a}) ++wrong;
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::testing
