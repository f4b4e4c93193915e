#include "transport/listen.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "core/host_port.hpp"

namespace troupe {
namespace {

/// Listens on one address: a socket, or minus an errno.
int listen_at(const addrinfo& info) {
  const int socket = ::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -errno;
  // A launcher that is started again does not wait for the connections of its predecessor.
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket, info.ai_addr, info.ai_addrlen) == 0 && ::listen(socket, SOMAXCONN) == 0)
    return socket;
  const int error = errno;
  ::close(socket);
  return -error;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Error listen_failure(const std::string& where, int error) {
  switch (error) {
    case EADDRINUSE:
      return cluster_error(where, "the port is taken", "choose another one, or 0 for any free one");
    case EADDRNOTAVAIL:
      return cluster_error(where, "this machine has no such address",
                           "listen on an address of its own, or on 0.0.0.0 for all of them");
    case EACCES:
      return cluster_error(where, "this user may not listen on this port",
                           "choose a port above 1023");
    default:
      return cluster_error(where, "cannot listen: " + std::string(std::strerror(error)),
                           "check the host and the port");
  }
}

}  // namespace

Result<Listening> listen_on(const std::string& host, std::uint16_t port) {
  const std::string where = to_string(HostPort{host, port});
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0)
    return cluster_error(where, "cannot resolve the host: " + std::string(::gai_strerror(status)),
                         "check the host's name");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* info = addresses.get(); info != nullptr; info = info->ai_next) {
    const int socket = listen_at(*info);
    if (socket >= 0) return Listening{socket, port_of(socket)};
    error = -socket;
  }
  return listen_failure(where, error);
}

}  // namespace troupe
