#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"

namespace troupe::mp::test {

/// A model that both sides know.
struct ParityModel {
  std::string name;    ///< in models.py
  std::string config;  ///< of the message Model, as text
  std::uint32_t classes = 10;
  Shape inputs;                  ///< of one sample
  std::string output = "fc:0";   ///< what comes before the loss
  std::uint32_t vocabulary = 0;  ///< inputs are token ids below this instead of numbers
  std::string middle;            ///< a layer before which it can be cut
  /// Parameters whose gradient is zero but for rounding: what they add, batch norm takes away.
  std::vector<std::string> without_gradient = {};
};

/// torchvision's residual network of this depth.
ParityModel resnet_model(std::uint32_t depth, std::uint32_t classes = 10, std::int64_t image = 64);

/// A small model of every family, by its name in models.py; throws where there is none.
const ParityModel& small_model(const std::string& name);

const std::vector<ParityModel>& small_models();

v1::Model config_of(const ParityModel& model);

}  // namespace troupe::mp::test
