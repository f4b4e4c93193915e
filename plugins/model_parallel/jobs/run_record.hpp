#pragma once

#include <filesystem>
#include <vector>

#include "core/numerics.hpp"
#include "troupe/result.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {

/// Writes run.json into `directory`: the job as it runs, after all `--set`, what each node said of
/// itself, and what each stage computes with.
Result<void> write_run_record(const JobSession& session, const std::filesystem::path& directory,
                              const std::vector<StageNumerics>& stages);

}  // namespace troupe::mp
