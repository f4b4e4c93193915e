#include "actor/call_node.hpp"

#include <algorithm>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>

#include "actor/control_codec.hpp"
#include "core/host_port.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for the answer, however long connecting took.
constexpr std::chrono::milliseconds least_answer_time{500};

}  // namespace

std::string to_string(const Callee& callee) {
  return callee.who.empty() ? callee.address : callee.who + " at " + callee.address;
}

Result<caf::actor> connect_to(BaspNetwork& network, const Callee& callee,
                              std::chrono::milliseconds timeout) {
  TROUPE_ASSIGN(const HostPort target, parse_address(callee.address));
  auto connected = network.connect(target.host, target.port, timeout);
  if (!connected) {
    Error error = std::move(connected).error();
    error.where = to_string(callee);
    return error;
  }
  return connected;
}

Result<CalledNode> check_answer(const Callee& callee, const caf::actor& control,
                                const runtime::v1::Response& answer,
                                const caf::strong_actor_ptr& endpoint) {
  const std::string where = to_string(callee);
  if (!answer.has_hello()) return cluster_error(where, "wrong answer to hello");
  TROUPE_TRY(check_peer(where, answer.hello()));
  if (callee.node.empty()) return CalledNode{control, nullptr, answer.hello()};
  if (answer.hello().name() != callee.node)
    return cluster_error(
        where,
        "node " + answer.hello().name() + " answered where node " + callee.node + " was expected",
        "check that no two processes are reached by one address");
  if (!endpoint) return cluster_error(where, "answered hello without an endpoint");
  return CalledNode{control, caf::actor_cast<caf::actor>(endpoint), answer.hello()};
}

Result<CalledNode> call_node(caf::blocking_actor& self, BaspNetwork& network, const Callee& callee,
                             const runtime::v1::Request& hello, const caf::actor& endpoint,
                             std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  TROUPE_ASSIGN(const caf::actor control, connect_to(network, callee, timeout));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  Result<CalledNode> called = CalledNode{};
  self.request(control, std::max(left, least_answer_time), encode(hello),
               caf::actor_cast<caf::strong_actor_ptr>(endpoint))
      .receive(
          [&](const ControlBytes& bytes, const caf::strong_actor_ptr& peer) {
            auto answer = decode_response(bytes);
            called = answer ? check_answer(callee, control, *answer, peer)
                            : Result<CalledNode>(std::move(answer).error());
          },
          [&](const caf::error& error) {
            called = cluster_error(to_string(callee),
                                   "no answer to hello: " + self.system().render(error));
          });
  return called;
}

}  // namespace troupe
