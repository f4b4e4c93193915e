#pragma once

#include <filesystem>

#include "troupe/result.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {

/// Writes run.json into `directory`: the job as it runs, after all `--set`, and what each
/// node said of itself. Warns when nodes differ in what decides the bits of results.
Result<void> write_run_record(const JobSession& session, const std::filesystem::path& directory);

}  // namespace troupe::mp
