// Compiled once for each set of vector instructions; the loader chooses. What is inlined into a
// function is compiled as that function is.
#include "libtorch/dropout_kernels.hpp"

#include <algorithm>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define TROUPE_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TROUPE_VECTORISED
#endif

#define TROUPE_INLINED inline __attribute__((always_inline))

namespace troupe::mp::libtorch {
namespace {

constexpr int lanes = 16;
constexpr int rounds = 10;

/// Philox4x32-10 at `lanes` counters from `first` on: word w of lane l is words[w * lanes + l]. The
/// numbers of `philox` in core/random.hpp, which a test compares.
TROUPE_INLINED void philox_lanes(std::uint64_t key, std::uint64_t first,
                                 std::uint32_t* __restrict words) {
  std::uint32_t* c0 = words;
  std::uint32_t* c1 = words + lanes;
  std::uint32_t* c2 = words + 2 * lanes;
  std::uint32_t* c3 = words + 3 * lanes;
  for (int l = 0; l < lanes; ++l) {
    // `first` is a multiple of the lanes: no carry.
    c0[l] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(l);
    c1[l] = static_cast<std::uint32_t>(first >> 32);
    c2[l] = 0;
    c3[l] = 0;
  }
  auto key_0 = static_cast<std::uint32_t>(key);
  auto key_1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    for (int l = 0; l < lanes; ++l) {
      const std::uint64_t product_0 = std::uint64_t{0xD2511F53} * c0[l];
      const std::uint64_t product_1 = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(product_1 >> 32) ^ c1[l] ^ key_0;
      c2[l] = static_cast<std::uint32_t>(product_0 >> 32) ^ c3[l] ^ key_1;
      c1[l] = static_cast<std::uint32_t>(product_1);
      c3[l] = static_cast<std::uint32_t>(product_0);
    }
    key_0 += 0x9E3779B9;
    key_1 += 0xBB67AE85;
  }
}

template <class T>
TROUPE_INLINED void drop(const DropoutDraw& draw, std::int64_t begin, std::int64_t end, const T* x,
                         T* y) {
  const std::uint64_t key = draw.key;
  const std::uint32_t threshold = draw.threshold;
  const T scale = static_cast<T>(draw.scale);
  alignas(64) std::uint32_t words[dropout_block];
  for (std::int64_t block = begin; block < end; block += dropout_block) {
    philox_lanes(key, static_cast<std::uint64_t>(block / dropout_block) * lanes, words);
    const std::int64_t count = std::min(dropout_block, end - block);
    for (std::int64_t i = 0; i < count; ++i) {
      const T kept = x[block + i] * scale;
      y[block + i] = words[i] < threshold ? T{0} : kept;
    }
  }
}

}  // namespace

TROUPE_VECTORISED
void drop_elements(const DropoutDraw& draw, std::int64_t begin, std::int64_t end, const float* x,
                   float* y) {
  drop(draw, begin, end, x, y);
}

TROUPE_VECTORISED
void drop_elements(const DropoutDraw& draw, std::int64_t begin, std::int64_t end, const double* x,
                   double* y) {
  drop(draw, begin, end, x, y);
}

}  // namespace troupe::mp::libtorch
