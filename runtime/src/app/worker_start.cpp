#include "app/worker_start.hpp"

#include <unistd.h>

#include <utility>

#include "actor/control_codec.hpp"

namespace troupe {
namespace {

Result<runtime::v1::WorkerStarted> read_ready(const std::string& node, Result<std::string> answer) {
  const std::string where = "worker of node " + node;
  if (!answer) {
    Error error = std::move(answer).error();
    error.where = where;
    return error;
  }
  runtime::v1::WorkerReady ready;
  if (!ready.ParseFromString(*answer)) return internal_error(where, "unreadable first answer");
  if (ready.has_failure()) return to_error(ready.failure());
  if (!ready.has_started()) return internal_error(where, "empty first answer");
  return ready.started();
}

}  // namespace

Result<pid_t> start_worker(ChildProcesses& children, const std::filesystem::path& binary,
                           const runtime::v1::WorkerSpec& spec, Environment environment,
                           OnWorkerReady on_ready, ChildProcesses::OnExit on_exit) {
  if (access(binary.c_str(), X_OK) != 0)
    return bad_input(binary.string(), "not an executable to start workers from",
                     "set TROUPE_BINARY to the troupe binary");
  ChildProcesses::Command command;
  // The node's name is for those who look at the process list.
  command.arguments = {binary.string(), "worker", "--node", spec.node()};
  command.environment = std::move(environment);
  command.input = spec.SerializeAsString();
  return children.start(
      std::move(command),
      [node = spec.node(), on_ready = std::move(on_ready)](pid_t pid, Result<std::string> answer) {
        on_ready(pid, read_ready(node, std::move(answer)));
      },
      std::move(on_exit));
}

}  // namespace troupe
