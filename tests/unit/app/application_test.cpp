#include "app/application.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include <boost/test/unit_test.hpp>
#include <caf/blocking_actor.hpp>

namespace troupe {
namespace {

/// A loopback port that accepts connections and says nothing.
class MutePort {
 public:
  MutePort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_REQUIRE_EQUAL(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    BOOST_REQUIRE_EQUAL(::listen(socket_, 8), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~MutePort() { ::close(socket_); }
  MutePort(const MutePort&) = delete;
  MutePort& operator=(const MutePort&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(application)

// As a worker that is stopped while it connects to its peers.
BOOST_AUTO_TEST_CASE(the_network_outlives_an_actor_that_connects_and_does_not_keep_it_waiting) {
  MutePort mute;
  std::promise<bool> connected;
  {
    Application application;
    BaspNetwork& network = application.network();
    std::promise<void> begun;
    application.system().spawn([&](caf::blocking_actor*) {
      begun.set_value();
      connected.set_value(network.connect("127.0.0.1", mute.port(), std::chrono::hours(1)).ok());
    });
    begun.get_future().wait();
  }
  auto result = connected.get_future();
  BOOST_REQUIRE((result.wait_for(std::chrono::seconds(0)) == std::future_status::ready));
  BOOST_TEST(!result.get());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
