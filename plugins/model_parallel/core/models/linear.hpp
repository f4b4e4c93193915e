#pragma once

#include <cstdint>
#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"

namespace troupe::mp {

/// Adds "<prefix>.weight" of shape [outputs, inputs] and, with `bias`, "<prefix>.bias", both
/// initialised as torch.nn.Linear does: uniform within 1 / sqrt(inputs). `inputs` > 0.
void add_linear_parameters(v1::Layer& layer, const std::string& prefix, std::int64_t inputs,
                           std::int64_t outputs, bool bias);

/// The same with initial values of the caller's; one that is not set leaves the bias out.
void add_linear_parameters(v1::Layer& layer, const std::string& prefix, std::int64_t inputs,
                           std::int64_t outputs, const v1::Init& weight, const v1::Init& bias);

}  // namespace troupe::mp
