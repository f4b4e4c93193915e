#include "netprobe/core/report.hpp"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <boost/test/unit_test.hpp>

namespace np = troupe::netprobe;

namespace {

troupe::runtime::v1::LinkProfile two_links() {
  troupe::runtime::v1::LinkProfile profile;
  for (const char* from : {"a", "longer"}) {
    auto* link = profile.add_links();
    link->set_from(from);
    link->set_to("b\"");
    link->set_round_trip_seconds(0.00025);
    auto* transfer = link->add_transfers();
    transfer->set_bytes(4096);
    transfer->set_seconds(0.5);
    transfer->set_bytes_per_second(8192);
    transfer = link->add_transfers();
    transfer->set_bytes(1 << 20);
    transfer->set_seconds(0.001);
    transfer->set_bytes_per_second(1048576000);
  }
  return profile;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(report)

BOOST_AUTO_TEST_CASE(the_table_is_aligned) {
  const auto lines = np::format_table(two_links());
  BOOST_REQUIRE(lines.size() == 3u);
  BOOST_TEST(lines[0] == "from    to  round trip     4 KiB      1 MiB");
  BOOST_TEST(lines[1] == "a       b\"      250 us  8.2 kB/s  1.05 GB/s");
  BOOST_TEST(lines[2] == "longer  b\"      250 us  8.2 kB/s  1.05 GB/s");
}

BOOST_AUTO_TEST_CASE(the_json_object_is_the_profile_again) {
  const auto profile = two_links();
  const auto json = np::format_json(profile);
  BOOST_TEST(json.find('\n') == std::string::npos);
  troupe::runtime::v1::LinkProfile parsed;
  BOOST_REQUIRE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok());
  BOOST_TEST(google::protobuf::util::MessageDifferencer::Equals(profile, parsed));
}

BOOST_AUTO_TEST_CASE(sizes_are_written_in_binary_units) {
  BOOST_TEST(np::format_size(300) == "300 B");
  BOOST_TEST(np::format_size(4096) == "4 KiB");
  BOOST_TEST(np::format_size(1536 << 10) == "1.5 MiB");
  BOOST_TEST(np::format_size(std::uint64_t{8} << 30) == "8 GiB");
}

BOOST_AUTO_TEST_SUITE_END()
