#include "libtorch/blocked_weights.hpp"

#include <vector>

#include <boost/test/unit_test.hpp>

using troupe::mp::libtorch::BlockedWeights;
using troupe::mp::libtorch::unpack;

namespace {

std::int64_t rounded_up(std::int64_t number, std::int64_t block) {
  return (number + block - 1) / block * block;
}

/// A layout as the kernels use them: blocks of output channels outermost, then those of input
/// channels, then positions, then the block with the output channels innermost or outermost.
BlockedWeights layout(std::int64_t out, std::int64_t in, std::int64_t height, std::int64_t width,
                      std::int64_t out_block, std::int64_t in_block, bool out_innermost) {
  BlockedWeights l;
  l.out_channels = out;
  l.in_channels = in;
  l.height = height;
  l.width = width;
  l.out_block = out_block;
  l.in_block = in_block;
  if (out_block != 1) l.out_step = out_innermost ? 1 : in_block;
  if (in_block != 1) l.in_step = out_innermost ? out_block : 1;
  l.width_stride = out_block * in_block;
  l.height_stride = l.width_stride * width;
  l.in_stride = l.height_stride * height;
  l.out_stride = l.in_stride * (rounded_up(in, in_block) / in_block);
  return l;
}

std::int64_t offset(const BlockedWeights& l, std::int64_t o, std::int64_t i, std::int64_t h,
                    std::int64_t w) {
  return o / l.out_block * l.out_stride + o % l.out_block * l.out_step +
         i / l.in_block * l.in_stride + i % l.in_block * l.in_step + h * l.height_stride +
         w * l.width_stride;
}

void check(const BlockedWeights& l) {
  std::vector<float> blocked(static_cast<std::size_t>(rounded_up(l.out_channels, l.out_block) /
                                                      l.out_block * l.out_stride),
                             -1.0f);
  std::vector<float> expected;
  for (std::int64_t o = 0; o < l.out_channels; ++o)
    for (std::int64_t i = 0; i < l.in_channels; ++i)
      for (std::int64_t h = 0; h < l.height; ++h)
        for (std::int64_t w = 0; w < l.width; ++w) {
          expected.push_back(static_cast<float>(expected.size()));
          blocked[static_cast<std::size_t>(offset(l, o, i, h, w))] = expected.back();
        }
  std::vector<float> found(expected.size(), -2.0f);
  unpack(l, blocked.data(), found.data());
  BOOST_TEST((found == expected));
}

}  // namespace

BOOST_AUTO_TEST_CASE(weights_come_out_of_blocks_in_row_major_order) {
  struct Kernel {
    std::int64_t height;
    std::int64_t width;
  };
  for (const Kernel k : {Kernel{1, 1}, {3, 3}, {7, 7}, {1, 3}, {9, 1}})
    for (const std::int64_t out : {16, 64, 50})
      for (const std::int64_t in : {3, 16, 40}) {
        BOOST_TEST_CONTEXT(in << " to " << out << " channels, " << k.height << "x" << k.width) {
          for (const bool out_innermost : {false, true})
            check(layout(out, in, k.height, k.width, 16, 16, out_innermost));
          check(layout(out, in, k.height, k.width, 48, 1, true));
          check(layout(out, in, k.height, k.width, 1, 16, true));
          check(layout(out, in, k.height, k.width, 1, 1, true));
        }
      }
}
