#include "core/random.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

namespace mp = troupe::mp;

namespace {

using Words = std::array<std::uint32_t, 4>;

std::string hex(const Words& words) {
  std::string text;
  for (auto word : words) {
    char part[16];
    std::snprintf(part, sizeof part, "%08x ", word);
    text += part;
  }
  return text;
}

mp::v1::Parameter parameter(const std::string& name, std::initializer_list<int> shape) {
  mp::v1::Parameter p;
  p.set_name(name);
  for (auto d : shape) p.add_shape(d);
  return p;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_numbers)

// The vectors "philox4x32 10" of Random123's kat_vectors file.
BOOST_AUTO_TEST_CASE(philox_matches_the_published_known_answers) {
  BOOST_TEST(hex(mp::philox(0, 0, 0)) == hex({0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  BOOST_TEST(hex(mp::philox(~0ull, ~0ull, ~0ull)) ==
             hex({0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST(hex(mp::philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e)) ==
             hex({0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(streams_differ_by_seed_and_by_name) {
  BOOST_TEST(mp::stream_key(1, "fc.weight") == mp::stream_key(1, "fc.weight"));
  BOOST_TEST(mp::stream_key(1, "fc.weight") != mp::stream_key(2, "fc.weight"));
  BOOST_TEST(mp::stream_key(1, "fc.weight") != mp::stream_key(1, "fc.bias"));
  BOOST_TEST(mp::stream_key(1, "") != mp::stream_key(2, ""));
}

BOOST_AUTO_TEST_CASE(uniform_numbers_lie_in_the_unit_interval_with_the_right_moments) {
  const auto key = mp::stream_key(7, "uniform");
  const int n = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = mp::uniform_at(key, i);
    BOOST_REQUIRE(u >= 0.0 && u < 1.0);
    sum += u;
    squares += u * u;
  }
  BOOST_TEST(std::abs(sum / n - 0.5) < 0.005);
  BOOST_TEST(std::abs(squares / n - 1.0 / 3.0) < 0.005);
}

BOOST_AUTO_TEST_CASE(normal_numbers_have_the_right_moments) {
  const auto key = mp::stream_key(7, "normal");
  const int n = 200000;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, last = 0;
  for (int i = 0; i < n; ++i) {
    const double x = mp::normal_at(key, i);
    BOOST_REQUIRE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    neighbours += x * last;
    last = x;
  }
  BOOST_TEST(std::abs(sum / n) < 0.01);
  BOOST_TEST(std::abs(squares / n - 1) < 0.02);
  BOOST_TEST(std::abs(fourth / n - 3) < 0.1);
  BOOST_TEST(std::abs(neighbours / n) < 0.01);
}

BOOST_AUTO_TEST_CASE(filling_gives_the_same_bits_as_single_elements_from_any_start) {
  const auto key = mp::stream_key(3, "fill");
  for (std::uint64_t first : {0, 1, 2, 5})
    for (std::uint64_t count : {0, 1, 2, 3, 8, 9}) {
      std::vector<double> filled(count);
      std::vector<float> rounded(count);
      mp::fill_normal(key, first, count, filled.data());
      mp::fill_normal(key, first, count, rounded.data());
      for (std::uint64_t i = 0; i < count; ++i) {
        BOOST_TEST(filled[i] == mp::normal_at(key, first + i));
        BOOST_TEST(rounded[i] == static_cast<float>(mp::normal_at(key, first + i)));
      }
    }
}

BOOST_AUTO_TEST_CASE(a_permutation_holds_every_index_once_and_depends_on_the_key) {
  const auto a = mp::permutation(mp::stream_key(1, "epoch"), 1000);
  const auto b = mp::permutation(mp::stream_key(2, "epoch"), 1000);
  BOOST_TEST((a != b));
  BOOST_TEST((a == mp::permutation(mp::stream_key(1, "epoch"), 1000)));
  auto sorted = a;
  std::sort(sorted.begin(), sorted.end());
  BOOST_TEST((a != sorted));
  std::vector<std::uint64_t> identity(1000);
  std::iota(identity.begin(), identity.end(), 0);
  BOOST_TEST(sorted == identity, boost::test_tools::per_element());
  BOOST_TEST(mp::permutation(1, 0).empty());
  BOOST_TEST(mp::permutation(1, 1).size() == 1u);
}

// Every order of three elements is about equally frequent.
BOOST_AUTO_TEST_CASE(permutations_are_fair) {
  std::map<std::vector<std::uint64_t>, int> seen;
  for (int i = 0; i < 6000; ++i) ++seen[mp::permutation(mp::stream_key(i, "fair"), 3)];
  BOOST_TEST(seen.size() == 6u);
  for (const auto& [order, count] : seen) BOOST_TEST(std::abs(count - 1000) < 150);
}

BOOST_AUTO_TEST_CASE(initial_tensors_follow_their_init) {
  auto p = parameter("conv1.weight", {64, 3, 7, 7});
  p.mutable_init()->set_normal_std(0.5);
  const auto normal = mp::initial_tensor(p, 42, mp::v1::DTYPE_FLOAT64);
  BOOST_TEST(normal.validate().ok());
  double squares = 0;
  for (int i = 0; i < 9408; ++i) squares += normal.as<double>()[i] * normal.as<double>()[i];
  BOOST_TEST(std::abs(std::sqrt(squares / 9408) - 0.5) < 0.02);

  const auto rounded = mp::initial_tensor(p, 42, mp::v1::DTYPE_FLOAT32);
  for (int i = 0; i < 9408; ++i)
    BOOST_REQUIRE(rounded.as<float>()[i] == static_cast<float>(normal.as<double>()[i]));

  p.mutable_init()->set_uniform_bound(0.25);
  const auto uniform = mp::initial_tensor(p, 42, mp::v1::DTYPE_FLOAT64);
  const auto range = std::minmax_element(uniform.as<double>(), uniform.as<double>() + 9408);
  BOOST_TEST(*range.first >= -0.25);
  BOOST_TEST(*range.second < 0.25);
  BOOST_TEST(*range.second - *range.first > 0.49);

  p.mutable_init()->set_constant(1);
  BOOST_TEST(mp::initial_tensor(p, 42, mp::v1::DTYPE_FLOAT32).as<float>()[9407] == 1.0f);
}

BOOST_AUTO_TEST_CASE(truncated_normal_numbers_keep_to_their_bound_and_have_the_right_deviation) {
  // The deviation of a standard normal variable given |x| <= b is
  // sqrt(1 - 2 b phi(b) / (2 Phi(b) - 1)), phi and Phi being its density and distribution.
  for (const double bound : {0.5, 2.0, 6.0}) {
    const auto key = mp::stream_key(7, "truncated");
    const double density = std::exp(-bound * bound / 2) / std::sqrt(2 * std::acos(-1.0));
    const double expected = std::sqrt(1 - 2 * bound * density / std::erf(bound / std::sqrt(2.0)));
    const int n = 100000;
    double sum = 0, squares = 0, most = 0;
    for (int i = 0; i < n; ++i) {
      const double x = mp::truncated_normal_at(key, i, 3, 3 * bound) / 3;
      sum += x;
      squares += x * x;
      most = std::max(most, std::abs(x));
    }
    BOOST_TEST(most <= bound);
    BOOST_TEST(std::abs(sum / n) < 0.02 * expected);
    BOOST_TEST(std::abs(std::sqrt(squares / n) - expected) < 0.01 * expected);
  }
}

BOOST_AUTO_TEST_CASE(initial_tensors_can_be_truncated_normal) {
  auto p = parameter("conv_proj.weight", {40, 50});
  p.mutable_init()->mutable_truncated_normal()->set_std(0.5);
  p.mutable_init()->mutable_truncated_normal()->set_bound(0.75);
  const auto tensor = mp::initial_tensor(p, 42, mp::v1::DTYPE_FLOAT64);
  const auto range = std::minmax_element(tensor.as<double>(), tensor.as<double>() + 2000);
  BOOST_TEST(*range.first >= -0.75);
  BOOST_TEST(*range.first < -0.7);
  BOOST_TEST(*range.second <= 0.75);
  BOOST_TEST(*range.second > 0.7);
}

BOOST_AUTO_TEST_CASE(samples_have_keys_of_their_own_in_each_step_and_stream) {
  const auto key = mp::sample_key(1, "layer", 2, 3);
  BOOST_TEST(key == mp::sample_key(1, "layer", 2, 3));
  for (const auto other : {mp::sample_key(0, "layer", 2, 3), mp::sample_key(1, "other", 2, 3),
                           mp::sample_key(1, "layer", 3, 3), mp::sample_key(1, "layer", 2, 4),
                           mp::sample_key(1, "layer", 3, 2)})
    BOOST_TEST(key != other);
}

BOOST_AUTO_TEST_CASE(initial_tensors_depend_on_seed_and_name_only) {
  auto p = parameter("a", {16});
  p.mutable_init()->set_normal_std(1);
  auto q = parameter("b", {16});
  q.mutable_init()->set_normal_std(1);
  const auto first = [](const mp::HostTensor& t) { return t.as<double>()[0]; };
  const auto at = [&](const mp::v1::Parameter& x, int seed) {
    return first(mp::initial_tensor(x, seed, mp::v1::DTYPE_FLOAT64));
  };
  BOOST_TEST(at(p, 1) == at(p, 1));
  BOOST_TEST(at(p, 1) != at(q, 1));
  BOOST_TEST(at(p, 1) != at(p, 2));
}

BOOST_AUTO_TEST_CASE(integer_buffers_are_int64_scalars) {
  auto p = parameter("bn1.num_batches_tracked", {});
  p.set_integer(true);
  p.mutable_init()->set_constant(0);
  const auto tensor = mp::initial_tensor(p, 1, mp::v1::DTYPE_FLOAT32);
  BOOST_TEST(tensor.dtype == mp::v1::DTYPE_INT64);
  BOOST_TEST(tensor.shape.empty());
  BOOST_TEST(tensor.data.size() == 8u);
  BOOST_TEST(tensor.as<std::int64_t>()[0] == 0);
}

BOOST_AUTO_TEST_SUITE_END()
