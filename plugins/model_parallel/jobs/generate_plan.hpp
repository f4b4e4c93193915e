#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/plan.hpp"
#include "data/tokenizer.hpp"
#include "jobs/job_setup.hpp"
#include "troupe/model_parallel/v1/generate_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// A generation job, checked and worked out, with its files read.
struct GeneratePlan {
  Plan plan;  ///< its outputs are the scores of the token after the last position: [1, 1, tokens]
  TensorMap weights;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::int64_t> prompt;  ///< at least one token
  std::uint32_t context = 0;         ///< most positions that the model reads
};

/// Checks what ranges cannot say, reads prompt, tokenizer and weights, cuts the model. Touches no
/// node.
Result<GeneratePlan> make_generate_plan(const JobFile& file, const v1::GenerateJob& config);

}  // namespace troupe::mp
