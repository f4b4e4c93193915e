#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include "two_systems.hpp"

namespace troupe::testing {
namespace {

/// A TCP socket bound to a free loopback port; listening if asked to.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(bool listening) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = loopback(0);
    BOOST_REQUIRE_EQUAL(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (listening) BOOST_REQUIRE_EQUAL(::listen(socket_, 8), 0);
    socklen_t size = sizeof address;
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~LoopbackSocket() { ::close(socket_); }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;

  std::uint16_t port() const { return port_; }

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

/// Sends raw bytes to a port and waits until the other side closes the connection.
void send_as_a_stranger(std::uint16_t port, const std::string& bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = LoopbackSocket::loopback(port);
  BOOST_REQUIRE_EQUAL(
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  BOOST_REQUIRE_EQUAL(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                      static_cast<ssize_t>(bytes.size()));
  std::array<char, 4096> buffer;
  while (::recv(socket, buffer.data(), buffer.size(), 0) > 0) {
  }
  ::close(socket);
}

std::uint64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

/// A BASP header, big-endian: operation, two bytes of padding, flags, payload length, operation
/// data, source actor, destination actor.
std::string header_that_claims(std::uint32_t payload_bytes) {
  std::string header(32, '\0');
  header[0] = 2;   // a direct message
  header[31] = 1;  // to some actor
  for (int i = 0; i < 4; ++i)
    header[4 + i] = static_cast<char>((payload_bytes >> (24 - 8 * i)) & 0xff);
  return header;
}

void expect_healthy(RealNode& a, RealNode& b, std::size_t so_far) {
  const Blob payload = Blob::copy_of("still here", 10);
  a.mailer.send(Parcel{{b.mailer.node(), "inbox"}, "test", TrafficClass::control, 0, "", payload});
  BOOST_TEST(b.deliveries.wait_for(so_far + 1).size() == so_far + 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(basp_network)

BOOST_AUTO_TEST_CASE(sixty_four_mebibytes_cross_a_real_connection) {
  RealNode a("a");
  RealNode b("b");
  BOOST_REQUIRE(connect(a, b) != 0);
  b.bind_inbox("inbox");
  constexpr std::size_t size = 64U << 20;
  Blob payload = Blob::uninitialized(size);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = i * 0x9e3779b97f4a7c15ULL;
    std::memcpy(payload.mutable_data() + i, &word, 8);
  }
  a.mailer.send(Parcel{{"b", "inbox"}, "test", TrafficClass::activation, 3, "header", payload});
  const auto deliveries = b.deliveries.wait_for(1);
  BOOST_REQUIRE_EQUAL(deliveries.size(), 1u);
  BOOST_TEST(deliveries[0].header == "header");
  BOOST_TEST((deliveries[0].from == ActorAddress{"a", "test"}));
  BOOST_REQUIRE_EQUAL(deliveries[0].payload.size(), size);
  BOOST_TEST(std::memcmp(deliveries[0].payload.data(), payload.data(), size) == 0);
}

BOOST_AUTO_TEST_CASE(a_strangers_claim_of_two_gibibytes_costs_no_memory) {
  RealNode a("a");
  RealNode b("b");
  const std::uint16_t port = connect(a, b);
  BOOST_REQUIRE(port != 0);
  b.bind_inbox("inbox");
  expect_healthy(a, b, 0);
  const std::uint64_t before = peak_resident_bytes();
  send_as_a_stranger(port, header_that_claims(0x7fffffff));
  send_as_a_stranger(port, header_that_claims(0xffffffff));
  expect_healthy(a, b, 1);
  BOOST_TEST(peak_resident_bytes() < before + (64U << 20));
}

BOOST_AUTO_TEST_CASE(garbage_on_the_port_leaves_healthy_links_alone) {
  RealNode a("a");
  RealNode b("b");
  const std::uint16_t port = connect(a, b);
  BOOST_REQUIRE(port != 0);
  b.bind_inbox("inbox");
  expect_healthy(a, b, 0);
  send_as_a_stranger(port, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
  send_as_a_stranger(port, std::string(4096, '\xff'));
  expect_healthy(a, b, 1);
}

BOOST_AUTO_TEST_CASE(a_node_that_goes_away_is_reported_once) {
  RealNode a("a");
  {
    RealNode b("b");
    BOOST_REQUIRE(connect(a, b) != 0);
    a.bind_inbox("inbox");
    expect_healthy(b, a, 0);
  }
  const auto down = a.down.wait_for(1);
  BOOST_REQUIRE_EQUAL(down.size(), 1u);
  BOOST_TEST(down[0].node == "b");
  BOOST_TEST(down[0].reason == "connection closed");
}

BOOST_AUTO_TEST_CASE(an_occupied_port_is_a_clear_error) {
  RealNode a("a");
  LoopbackSocket taken(true);
  const auto published = a.network->publish(a.endpoint, "127.0.0.1", taken.port());
  BOOST_REQUIRE(!published.ok());
  BOOST_TEST((published.error().code == ErrorCode::cluster));
  BOOST_TEST(published.error().where == "127.0.0.1:" + std::to_string(taken.port()));
}

BOOST_AUTO_TEST_CASE(a_port_where_nobody_listens_is_a_clear_error) {
  RealNode a("a");
  LoopbackSocket closed(false);
  const auto connected =
      a.network->connect("127.0.0.1", closed.port(), std::chrono::milliseconds(200));
  BOOST_REQUIRE(!connected.ok());
  BOOST_TEST((connected.error().code == ErrorCode::cluster));
  BOOST_TEST(connected.error().what == "cannot connect: Connection refused");
}

BOOST_AUTO_TEST_CASE(a_peer_that_accepts_and_stays_silent_does_not_block_others) {
  RealNode a("a");
  LoopbackSocket mute(true);
  const auto connected =
      a.network->connect("127.0.0.1", mute.port(), std::chrono::milliseconds(300));
  BOOST_REQUIRE(!connected.ok());
  BOOST_TEST(connected.error().what == "accepts connections but does not answer");
  RealNode b("b");
  BOOST_TEST(connect(a, b) != 0);
}

BOOST_AUTO_TEST_CASE(an_unknown_host_is_a_clear_error) {
  RealNode a("a");
  const auto connected = a.network->connect("no-such-host.invalid", 1, patience);
  BOOST_REQUIRE(!connected.ok());
  BOOST_TEST(connected.error().where == "no-such-host.invalid:1");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::testing
