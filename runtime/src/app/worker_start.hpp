#pragma once

#include <filesystem>
#include <functional>

#include "app/child_processes.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

using OnWorkerReady = std::function<void(pid_t pid, Result<runtime::v1::WorkerStarted> started)>;

/// Starts `BINARY worker` with this specification and environment. `on_ready` gets where it
/// listens, or why it failed; it and `on_exit` run on the children's thread.
Result<pid_t> start_worker(ChildProcesses& children, const std::filesystem::path& binary,
                           const runtime::v1::WorkerSpec& spec, Environment environment,
                           OnWorkerReady on_ready, ChildProcesses::OnExit on_exit);

}  // namespace troupe
