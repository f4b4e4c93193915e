#include "data/image_crop.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::mp {

namespace {

constexpr int crop_tries = 10;
constexpr std::uint64_t draws_of_a_try = 4;
static_assert(crop_tries * draws_of_a_try == draws_of_random_crop);

Rectangle in_the_centre(int width, int height, const Rectangle& part) {
  return {(width - part.width) / 2, (height - part.height) / 2, part.width, part.height};
}

/// Halves to even, as Python.
int rounded(double x) { return static_cast<int>(std::nearbyint(x)); }

Rectangle largest_in_the_centre(int width, int height, const CropBounds& bounds) {
  const double ratio = static_cast<double>(width) / height;
  Rectangle part{0, 0, width, height};
  if (ratio < bounds.min_ratio) part.height = std::max(1, rounded(width / bounds.min_ratio));
  if (ratio > bounds.max_ratio) part.width = std::max(1, rounded(height * bounds.max_ratio));
  return in_the_centre(width, height, part);
}

}  // namespace

Rectangle random_crop(int width, int height, const CropBounds& bounds, const SampleRandom& random) {
  const double area = static_cast<double>(width) * height;
  for (std::uint64_t i = 0; i < crop_tries; ++i) {
    const std::uint64_t draw = i * draws_of_a_try;
    const double target = area * random.uniform(draw, bounds.min_scale, bounds.max_scale);
    const double ratio =
        std::exp(random.uniform(draw + 1, std::log(bounds.min_ratio), std::log(bounds.max_ratio)));
    const double wide = std::nearbyint(std::sqrt(target * ratio));
    const double high = std::nearbyint(std::sqrt(target / ratio));
    if (wide < 1 || wide > width || high < 1 || high > height) continue;
    Rectangle part;
    part.width = static_cast<int>(wide);
    part.height = static_cast<int>(high);
    const auto tops = static_cast<std::uint64_t>(height - part.height + 1);
    const auto lefts = static_cast<std::uint64_t>(width - part.width + 1);
    part.top = static_cast<int>(random.index(draw + 2, tops));
    part.left = static_cast<int>(random.index(draw + 3, lefts));
    return part;
  }
  return largest_in_the_centre(width, height, bounds);
}

ImageSize with_shorter_side(int width, int height, int side) {
  // In doubles and rounded down, as Python's int(side * long / short).
  const auto longer = [&](int longer_side, int shorter_side) {
    return static_cast<int>(static_cast<double>(side) * longer_side / shorter_side);
  };
  if (width <= height) return {side, longer(height, width)};
  return {longer(width, height), side};
}

Rectangle centre_square(const ImageSize& image, int side) {
  return {rounded((image.width - side) / 2.0), rounded((image.height - side) / 2.0), side, side};
}

}  // namespace troupe::mp
