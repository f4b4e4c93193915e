#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe::mp {

/// What computes one stage.
struct StageNumerics {
  std::uint32_t stage = 0;
  std::string node;
  std::string device;  ///< as the job declares it
  runtime::v1::NumericFingerprint fingerprint;
};

/// What the node and the executor of a stage know, each its part.
runtime::v1::NumericFingerprint merge(const runtime::v1::NumericFingerprint& node,
                                      const runtime::v1::NumericFingerprint& executor);

/// In what the stages differ that decides the bits of results and that no job file says: CPU model,
/// instruction set, BLAS kernel, library versions. Each difference with its values and the nodes
/// that have them, in one text; empty when there is none. Devices and threads are the job's own
/// choice, so stages are compared with those of the same kind of device ("cuda:0" with "cuda:1").
std::string numeric_differences(const std::vector<StageNumerics>& stages);

}  // namespace troupe::mp
