#include "core/host_port.hpp"

#include <boost/test/unit_test.hpp>

namespace troupe {

BOOST_AUTO_TEST_SUITE(host_port)

BOOST_AUTO_TEST_CASE(addresses_are_host_and_port) {
  auto plain = parse_address("192.0.2.7:7856");
  BOOST_REQUIRE(plain.ok());
  BOOST_TEST(plain->host == "192.0.2.7");
  BOOST_TEST(plain->port == 7856);
  auto six = parse_address("[::1]:80");
  BOOST_REQUIRE(six.ok());
  BOOST_TEST(six->host == "::1");
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_again) {
  for (const char* address : {"192.0.2.7:7856", "host.example:1", "[2001:db8::7]:65535"}) {
    auto parsed = parse_address(address);
    BOOST_REQUIRE_MESSAGE(parsed.ok(), address);
    BOOST_TEST(to_string(*parsed) == address);
  }
}

BOOST_AUTO_TEST_CASE(other_texts_are_no_addresses) {
  for (const char* wrong : {"", "x", ":1", "x:", "x:0", "x:65536", "x:1a", "[]:1", "::1:7856",
                            "[::1:7856", "a b:1", "a/b:1", "[[::1]]:1"})
    BOOST_TEST(!parse_address(wrong).ok(), wrong);
}

BOOST_AUTO_TEST_CASE(loopback_is_this_machine_only) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"})
    BOOST_TEST(is_loopback(host), host);
  for (const char* host : {"0.0.0.0", "192.0.2.7", "::", "example.org", "127.example.org"})
    BOOST_TEST(!is_loopback(host), host);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
