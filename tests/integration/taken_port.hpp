#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include <boost/test/unit_test.hpp>

namespace troupe::test {

/// A loopback port that is taken as long as the object lives.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    BOOST_REQUIRE(listen(socket_, 1) == 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { release(); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  int port() const { return port_; }
  /// Frees the port: nothing listens there any more.
  void release() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace troupe::test
