#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a GPT-2 with the names and initial values of Hugging Face's GPT2LMHeadModel. The
/// weights of linear maps within blocks are stored as there: [inputs, outputs]. Errors are located
/// at "model.gpt2...".
Result<std::vector<v1::Layer>> list_gpt2_layers(const v1::Gpt2& config);

}  // namespace troupe::mp
