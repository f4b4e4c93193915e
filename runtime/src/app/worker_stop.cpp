#include "app/worker_stop.hpp"

#include <future>
#include <utility>

#include <caf/send.hpp>

#include "app/driver_actor.hpp"
#include "transport/endpoint.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;

ControlCall stop_call(const SessionNode& node, const RunKey& run_key, bool kill,
                      std::chrono::milliseconds timeout) {
  ControlCall call;
  call.who = node.who() + " at " + node.launcher_address;
  call.target = node.launcher;
  call.request.mutable_stop_worker()->set_pid(node.pid);
  call.request.mutable_stop_worker()->set_kill(kill);
  call.request.set_run_key(run_key.bytes());
  call.timeout = timeout;
  call.survives_interrupt = true;
  return call;
}

}  // namespace

void drain_workers(const caf::actor& driver_actor, const caf::actor& endpoint,
                   const std::vector<SessionNode>& nodes, const RunKey& run_key,
                   std::chrono::milliseconds deadline) {
  for (const SessionNode& node : nodes) {
    if (!node.control) continue;
    caf::anon_send(endpoint, DetachPeer{node.name});
    ControlCall call;
    call.who = node.who();
    call.node = node.name;
    call.target = node.control;
    call.request.mutable_drain()->set_deadline_seconds(
        std::chrono::duration<double>(deadline).count());
    call.request.set_run_key(run_key.bytes());
    call.timeout = deadline;
    post(driver_actor, std::move(call));
  }
}

void stop_remote_workers(const caf::actor& driver_actor, const std::vector<SessionNode>& nodes,
                         const RunKey& run_key, bool kill, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::future<Result<ControlAnswer>>> answers;
  for (const SessionNode& node : nodes)
    if (!node.local() && node.pid != 0)
      answers.push_back(start_call(driver_actor, stop_call(node, run_key, kill, timeout)));
  for (const auto& answer : answers) answer.wait_until(deadline);
}

}  // namespace troupe
