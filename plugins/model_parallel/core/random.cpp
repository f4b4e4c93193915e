#include "core/random.hpp"

#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace troupe::mp {

namespace {

// Multipliers and Weyl increments of Philox4x32 (Random123, philox.h).
constexpr std::uint64_t multiplier_0 = 0xD2511F53;
constexpr std::uint64_t multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9;
constexpr std::uint32_t weyl_1 = 0xBB67AE85;
constexpr int rounds = 10;

constexpr double two_pi = 6.283185307179586476925286766559;

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

std::uint64_t join(std::uint32_t first, std::uint32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | second;
}

/// The upper 53 bits as a number in [0, 1).
double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

/// A draw for truncated_normal_at that is right if it is accepted. Where the bound is narrow the
/// normal distribution would be refused too often: uniform numbers are then accepted in proportion
/// to its density.
struct Proposal {
  double value;
  bool accepted;
};

Proposal propose(std::uint64_t key, std::uint64_t index, std::uint64_t attempt, double std,
                 double bound) {
  // Attempts begin at 1: counters with 0 above belong to the plain distributions.
  const auto words = philox(key, index, attempt + 1);
  const double first = to_unit(join(words[0], words[1]));
  const double second = to_unit(join(words[2], words[3]));
  if (bound < std) {
    const double value = bound * (2.0 * first - 1.0);
    return {value, second < std::exp(-0.5 * (value / std) * (value / std))};
  }
  const double value = std * std::sqrt(-2.0 * std::log(1.0 - first)) * std::cos(two_pi * second);
  return {value, std::abs(value) <= bound};
}

/// Both results of one Box-Muller transform: elements 2 * pair and 2 * pair + 1. One function for
/// every caller, so that an element has the same bits however it is asked for.
__attribute__((noinline)) std::array<double, 2> normal_pair(std::uint64_t key, std::uint64_t pair) {
  const auto words = philox(key, pair, 0);
  // 1 - u lies in (0, 1]: its logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - to_unit(join(words[0], words[1]))));
  const double angle = two_pi * to_unit(join(words[2], words[3]));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

template <class T>
void fill_normal_as(std::uint64_t key, std::uint64_t first, std::uint64_t count, double scale,
                    T* out) {
  std::uint64_t i = 0;
  if (first % 2 == 1 && count != 0) out[i++] = static_cast<T>(scale * normal_at(key, first));
  for (; i + 2 <= count; i += 2) {
    const auto pair = normal_pair(key, (first + i) / 2);
    out[i] = static_cast<T>(scale * pair[0]);
    out[i + 1] = static_cast<T>(scale * pair[1]);
  }
  if (i < count) out[i] = static_cast<T>(scale * normal_at(key, first + i));
}

template <class T>
void fill_initial(const v1::Init& init, std::uint64_t key, std::uint64_t count, T* out) {
  switch (init.kind_case()) {
    case v1::Init::kNormalStd: fill_normal_as(key, 0, count, init.normal_std(), out); return;
    case v1::Init::kUniformBound:
      for (std::uint64_t i = 0; i < count; ++i)
        out[i] = static_cast<T>(init.uniform_bound() * (2.0 * uniform_at(key, i) - 1.0));
      return;
    case v1::Init::kTruncatedNormal:
      for (std::uint64_t i = 0; i < count; ++i)
        out[i] = static_cast<T>(truncated_normal_at(key, i, init.truncated_normal().std(),
                                                    init.truncated_normal().bound()));
      return;
    default:
      for (std::uint64_t i = 0; i < count; ++i) out[i] = static_cast<T>(init.constant());
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                    std::uint64_t counter_high) {
  std::array<std::uint32_t, 4> c = {low(counter_low), high(counter_low), low(counter_high),
                                    high(counter_high)};
  std::uint32_t key_0 = low(key);
  std::uint32_t key_1 = high(key);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product_0 = multiplier_0 * c[0];
    const std::uint64_t product_1 = multiplier_1 * c[2];
    c = {high(product_1) ^ c[1] ^ key_0, low(product_1), high(product_0) ^ c[3] ^ key_1,
         low(product_0)};
    key_0 += weyl_0;
    key_1 += weyl_1;
  }
  return c;
}

std::uint64_t stream_key(std::uint64_t seed, std::string_view name) {
  // FNV-1a of the name, then Philox under the seed, which spreads every bit of both.
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  const auto words = philox(seed, hash, name.size());
  return join(words[0], words[1]);
}

double uniform_at(std::uint64_t key, std::uint64_t index) {
  const auto words = philox(key, index, 0);
  return to_unit(join(words[0], words[1]));
}

double normal_at(std::uint64_t key, std::uint64_t index) {
  return normal_pair(key, index / 2)[index % 2];
}

std::uint64_t sample_key(std::uint64_t seed, std::string_view name, std::uint64_t step,
                         std::uint64_t sample) {
  const auto words = philox(stream_key(seed, name), sample, step);
  return join(words[0], words[1]);
}

double truncated_normal_at(std::uint64_t key, std::uint64_t index, double std, double bound) {
  // At least two of three proposals are accepted.
  for (std::uint64_t attempt = 0;; ++attempt) {
    const Proposal proposal = propose(key, index, attempt, std, bound);
    if (proposal.accepted) return proposal.value;
  }
}

void fill_normal(std::uint64_t key, std::uint64_t first, std::uint64_t count, float* out) {
  fill_normal_as(key, first, count, 1.0, out);
}

void fill_normal(std::uint64_t key, std::uint64_t first, std::uint64_t count, double* out) {
  fill_normal_as(key, first, count, 1.0, out);
}

std::uint64_t index_at(std::uint64_t key, std::uint64_t index, std::uint64_t n) {
  const auto words = philox(key, index, 0);
  // Lemire's multiplication in place of a modulo; its bias is below n / 2^64.
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(join(words[0], words[1])) * n >>
                                    64);
}

std::vector<std::uint64_t> permutation(std::uint64_t key, std::uint64_t n) {
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  for (std::uint64_t i = n; i > 1; --i) std::swap(order[i - 1], order[index_at(key, i, i)]);
  return order;
}

HostTensor initial_tensor(const v1::Parameter& parameter, std::uint64_t seed, v1::DType dtype) {
  HostTensor tensor;
  tensor.dtype = parameter.integer() ? v1::DTYPE_INT64 : dtype;
  tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
  const std::uint64_t count = element_count(tensor.shape).value();
  tensor.data = Blob::uninitialized(count * element_size(tensor.dtype));
  const auto& owner = parameter.tied_to().empty() ? parameter.name() : parameter.tied_to();
  const std::uint64_t key = stream_key(seed, owner);
  auto* bytes = tensor.data.mutable_data();
  if (parameter.integer())
    fill_initial(parameter.init(), key, count, reinterpret_cast<std::int64_t*>(bytes));
  else if (dtype == v1::DTYPE_FLOAT64)
    fill_initial(parameter.init(), key, count, reinterpret_cast<double*>(bytes));
  else
    fill_initial(parameter.init(), key, count, reinterpret_cast<float*>(bytes));
  return tensor;
}

}  // namespace troupe::mp
