#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/runtime/v1/control.pb.h"
#include "troupe/runtime/v1/job.pb.h"

namespace troupe::mp {

/// Threads of an operation on each node where a stage leaves them open: the cores of its machine,
/// divided by the job's nodes there (by host name), at least 1. Nodes without an address are on
/// this machine, which has `cores_here`; the others say how many threads they have. A number that
/// is decided here, once, cannot depend on what else a process does.
std::map<std::string, std::uint32_t> thread_shares(const runtime::v1::Job& job,
                                                   const std::vector<runtime::v1::NodeInfo>& nodes,
                                                   std::uint32_t cores_here);

}  // namespace troupe::mp
