#include "core/thread_share.hpp"

#include <algorithm>

namespace troupe::mp {

std::map<std::string, std::uint32_t> thread_shares(const runtime::v1::Job& job,
                                                   const std::vector<runtime::v1::NodeInfo>& nodes,
                                                   std::uint32_t cores_here) {
  std::map<std::string, std::uint32_t> nodes_of;  // by host name
  for (const auto& node : nodes) ++nodes_of[node.host_name()];
  std::map<std::string, std::uint32_t> shares;
  for (const auto& node : nodes) {
    const auto in_job =
        std::find_if(job.nodes().begin(), job.nodes().end(),
                     [&](const auto& entry) { return entry.name() == node.name(); });
    const bool remote = in_job != job.nodes().end() && !in_job->address().empty();
    const auto cores = remote ? node.fingerprint().threads() : cores_here;
    shares[node.name()] = std::max(1U, cores / nodes_of[node.host_name()]);
  }
  return shares;
}

}  // namespace troupe::mp
