#pragma once

#include <cstdint>

namespace troupe::mp::libtorch {

/// How a convolution kernel keeps its weights: output channels in blocks, and perhaps input
/// channels too. The element (o, i, h, w) is at
///
///   (o / out_block) * out_stride + (o % out_block) * out_step +
///   (i / in_block) * in_stride + (i % in_block) * in_step + h * height_stride + w * width_stride
///
/// Blocks are multiples of 16, or 1 for channels that are not in blocks (their step is then 0).
struct BlockedWeights {
  std::int64_t out_channels = 0;
  std::int64_t in_channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t out_block = 1;
  std::int64_t in_block = 1;
  std::int64_t out_stride = 0;
  std::int64_t in_stride = 0;
  std::int64_t height_stride = 0;
  std::int64_t width_stride = 0;
  std::int64_t out_step = 0;
  std::int64_t in_step = 0;
};

/// Copies weights in blocks into a row-major (OIHW) array. oneDNN's own copy takes three times as
/// long, for every gradient of every step.
void unpack(const BlockedWeights& layout, const float* blocked, float* row_major);

}  // namespace troupe::mp::libtorch
