#include "transport/dial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/host_port.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

std::string numeric_address(const addrinfo& info) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(info.ai_addr, info.ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

/// How long `dial` may take to notice that it is to stop.
constexpr std::chrono::milliseconds stop_check_interval{50};

/// Waits until the non-blocking connect is through; 0 or an errno.
int wait_connected(int socket, Clock::time_point deadline, const std::atomic<bool>* stopped) {
  for (;;) {
    if (stopped != nullptr && *stopped) return ECANCELED;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return ETIMEDOUT;
    pollfd entry{socket, POLLOUT, 0};
    const auto slice = stopped != nullptr ? std::min(left, stop_check_interval) : left;
    const int ready = ::poll(&entry, 1, static_cast<int>(slice.count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return errno;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    return error;
  }
}

/// A connected socket, or minus an errno.
int connect_to(const addrinfo& info, Clock::time_point deadline, const std::atomic<bool>* stopped) {
  const int socket = ::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -errno;
  int error = 0;
  if (::connect(socket, info.ai_addr, info.ai_addrlen) != 0)
    error = errno == EINPROGRESS ? wait_connected(socket, deadline, stopped) : errno;
  if (error == 0) return socket;
  ::close(socket);
  return -error;
}

}  // namespace

Result<ResolvedHost> ResolvedHost::resolve(const std::string& host, std::uint16_t port) {
  const std::string where = to_string(HostPort{host, port});
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    return cluster_error(where, "cannot resolve the host: " + std::string(::gai_strerror(status)),
                         "check the host's name");
  }
  return ResolvedHost(where, std::shared_ptr<const addrinfo>(found, [](const addrinfo* list) {
                        ::freeaddrinfo(const_cast<addrinfo*>(list));
                      }));
}

Result<Dialed> ResolvedHost::dial(std::chrono::milliseconds timeout,
                                  const std::atomic<bool>* stopped) const {
  const Clock::time_point deadline = Clock::now() + timeout;
  int error = ETIMEDOUT;
  for (const addrinfo* info = addresses_.get(); info != nullptr; info = info->ai_next) {
    const int socket = connect_to(*info, deadline, stopped);
    if (socket >= 0) return Dialed{socket, numeric_address(*info)};
    error = -socket;
  }
  return cluster_error(where_, "cannot connect: " + std::string(std::strerror(error)),
                       error == ECONNREFUSED
                           ? "check the port, and that a troupe process listens there"
                           : "check the address, the network and firewalls");
}

SocketHandover::~SocketHandover() {
  for (auto& [key, entry] : entries_) {
    if (entry.offered >= 0) ::close(entry.offered);
    if (entry.held >= 0) ::close(entry.held);
  }
}

void SocketHandover::offer(const Key& key, int socket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (hung_up_) ::shutdown(socket, SHUT_RDWR);
  Entry& entry = entries_[key];
  if (entry.users++ > 0) {
    ::close(socket);
    return;
  }
  entry.offered = socket;
  entry.held = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
}

int SocketHandover::take(const Key& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? -1 : std::exchange(entry->second.offered, -1);
}

void SocketHandover::finish(const Key& key, bool hang_up) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (hang_up && entry.held >= 0) ::shutdown(entry.held, SHUT_RDWR);
  if (--entry.users > 0) return;
  if (entry.offered >= 0) ::close(entry.offered);
  if (entry.held >= 0) ::close(entry.held);
  entries_.erase(found);
}

void SocketHandover::hang_up_all() {
  const std::lock_guard<std::mutex> lock(mutex_);
  hung_up_ = true;
  for (const auto& [key, entry] : entries_)
    if (entry.held >= 0) ::shutdown(entry.held, SHUT_RDWR);
}

}  // namespace troupe
