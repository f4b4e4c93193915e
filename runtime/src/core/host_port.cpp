#include "core/host_port.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>

namespace troupe {

std::string to_string(const HostPort& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Result<HostPort> parse_address(const std::string& address) {
  const auto malformed = [&] {
    return bad_input(address.empty() ? "address" : address, "not HOST:PORT",
                     "write it like 192.0.2.7:7856 or [2001:db8::7]:7856");
  };
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return malformed();
  std::string host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets the last group of an IPv6 address would pass for a port.
  if (host.empty() || host.find_first_of(bracketed ? "[] \t/" : ":[] \t/") != std::string::npos)
    return malformed();
  const std::string digits = address.substr(colon + 1);
  if (digits.empty() || digits.size() > 5 ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return malformed();
  const unsigned long port = std::strtoul(digits.c_str(), nullptr, 10);
  if (port == 0 || port > 65535) return malformed();
  return HostPort{host, static_cast<std::uint16_t>(port)};
}

bool is_loopback(const std::string& host) {
  in_addr address{};
  // By the number, so that a host name that only looks like one does not pass.
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1";
}

}  // namespace troupe
