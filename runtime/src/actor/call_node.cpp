#include "actor/call_node.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>

#include "actor/control_codec.hpp"

namespace troupe {

Result<HostPort> parse_address(const std::string& address) {
  const auto colon = address.rfind(':');
  const auto malformed = [&] {
    return bad_input(address.empty() ? "address" : address, "not an address",
                     "write HOST:PORT, for example 192.0.2.7:7856");
  };
  if (colon == std::string::npos || colon == 0) return malformed();
  const std::string digits = address.substr(colon + 1);
  if (digits.empty() || digits.size() > 5 ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return malformed();
  const unsigned long port = std::strtoul(digits.c_str(), nullptr, 10);
  if (port == 0 || port > 65535) return malformed();
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return malformed();
  return HostPort{host, static_cast<std::uint16_t>(port)};
}

std::string format_address(const std::string& host, std::uint16_t port) {
  return fmt::format(host.find(':') == std::string::npos ? "{}:{}" : "[{}]:{}", host, port);
}

bool is_loopback(const std::string& host) {
  in_addr address{};
  // By the number, so that a host name that only looks like one does not pass.
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1";
}

Result<CalledNode> call_node(caf::blocking_actor& self, BaspNetwork& network,
                             const std::string& node, const std::string& address,
                             const runtime::v1::Hello& hello, const caf::actor& endpoint,
                             std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  TROUPE_ASSIGN(const HostPort target, parse_address(address));
  auto connected = network.connect(target.host, target.port, timeout);
  if (!connected) {
    Error error = std::move(connected).error();
    if (error.where.find(address) == std::string::npos) error.where = address;
    if (!node.empty()) error.where = node + " at " + error.where;
    return error;
  }
  CalledNode called;
  called.control = *connected;
  const std::string who = node.empty() ? address : node + " at " + address;
  runtime::v1::Request request;
  *request.mutable_hello() = hello;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  Result<runtime::v1::Response> response = cluster_error(who, "no answer");
  self.request(called.control, std::max(left, std::chrono::milliseconds(500)), encode(request),
               caf::actor_cast<caf::strong_actor_ptr>(endpoint))
      .receive(
          [&](const ControlBytes& bytes, const caf::strong_actor_ptr& peer) {
            response = decode_response(bytes);
            called.endpoint = peer;
          },
          [&](const caf::error& error) {
            response = cluster_error(who, "no answer to hello: " + self.system().render(error));
          });
  if (!response) return std::move(response).error();
  if (!response->has_hello()) return cluster_error(who, "wrong answer to hello");
  TROUPE_TRY(check_peer(who, response->hello()));
  called.info = response->hello();
  return called;
}

}  // namespace troupe
