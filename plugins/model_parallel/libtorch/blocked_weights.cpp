#include "libtorch/blocked_weights.hpp"

#include <algorithm>

namespace troupe::mp::libtorch {
namespace {

/// Channels a tile has in both directions. Going through tiles, each cache line of either side is
/// used whole while it is in the cache.
constexpr std::int64_t tile = 16;

struct Tile {
  std::int64_t outs;
  std::int64_t ins;
  std::int64_t height;
  std::int64_t width;
  std::int64_t row;  ///< from one output channel to the next in the row-major array
  std::int64_t out_step;
  std::int64_t in_step;
  std::int64_t height_step;
  std::int64_t width_step;
};

/// The counts are arguments of their own, so that the compiler knows them where they are constants.
inline void copy_tile(const Tile& t, std::int64_t outs, std::int64_t ins, std::int64_t height,
                      std::int64_t width, const float* __restrict blocked,
                      float* __restrict row_major) {
  for (std::int64_t o = 0; o < outs; ++o)
    for (std::int64_t i = 0; i < ins; ++i)
      for (std::int64_t h = 0; h < height; ++h)
        for (std::int64_t w = 0; w < width; ++w)
          row_major[o * t.row + (i * height + h) * width + w] =
              blocked[o * t.out_step + i * t.in_step + h * t.height_step + w * t.width_step];
}

void copy_tile(const Tile& t, const float* blocked, float* row_major) {
  const bool whole = t.outs == tile && t.ins == tile;
  if (whole && t.height == 1 && t.width == 1)
    copy_tile(t, tile, tile, 1, 1, blocked, row_major);
  else if (whole && t.height == 3 && t.width == 3)
    copy_tile(t, tile, tile, 3, 3, blocked, row_major);
  else
    copy_tile(t, t.outs, t.ins, t.height, t.width, blocked, row_major);
}

std::int64_t offset(std::int64_t channel, std::int64_t block, std::int64_t stride,
                    std::int64_t step) {
  return channel / block * stride + channel % block * step;
}

}  // namespace

void unpack(const BlockedWeights& l, const float* blocked, float* row_major) {
  const std::int64_t positions = l.height * l.width;
  Tile t;
  t.height = l.height;
  t.width = l.width;
  t.row = l.in_channels * positions;
  t.out_step = l.out_block == 1 ? l.out_stride : l.out_step;
  t.in_step = l.in_block == 1 ? l.in_stride : l.in_step;
  t.height_step = l.height_stride;
  t.width_step = l.width_stride;
  for (std::int64_t o = 0; o < l.out_channels; o += tile) {
    t.outs = std::min(tile, l.out_channels - o);
    for (std::int64_t i = 0; i < l.in_channels; i += tile) {
      t.ins = std::min(tile, l.in_channels - i);
      copy_tile(t,
                blocked + offset(o, l.out_block, l.out_stride, l.out_step) +
                    offset(i, l.in_block, l.in_stride, l.in_step),
                row_major + o * t.row + i * positions);
    }
  }
}

}  // namespace troupe::mp::libtorch
