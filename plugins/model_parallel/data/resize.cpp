#include "data/resize.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::mp {

namespace {

/// Fractional bits of the weights: 8 bits of pixel and 2 of head room leave this many of 32.
constexpr int weight_bits = 32 - 8 - 2;

/// The input pixels that an output pixel is the mean of, and their weights.
struct Footprint {
  int first = 0;
  std::vector<int> weights;
};

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

/// The footprint of pixel `index` of a row of `to` pixels that is made from one of `from`.
Footprint footprint(int index, int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(scale, 1.0);
  const double centre = (index + 0.5) * scale;
  Footprint result;
  result.first = std::max(0, static_cast<int>(centre - stretch + 0.5));
  const int end = std::min(from, static_cast<int>(centre + stretch + 0.5));
  std::vector<double> weights;
  double sum = 0;
  const double inverse = 1.0 / stretch;
  for (int i = result.first; i < end; ++i) {
    weights.push_back(triangle((i - centre + 0.5) * inverse));
    sum += weights.back();
  }
  for (const double weight : weights)
    result.weights.push_back(
        static_cast<int>(0.5 + (sum != 0 ? weight / sum : weight) * (1 << weight_bits)));
  return result;
}

std::vector<Footprint> footprints(int begin, int count, int from, int to) {
  std::vector<Footprint> result;
  for (int i = begin; i < begin + count; ++i) result.push_back(footprint(i, from, to));
  return result;
}

/// The weighted mean of pixels that lie `step` bytes apart, the first at `pixel`.
std::uint8_t mean_of(const std::uint8_t* pixel, std::size_t step, const std::vector<int>& weights) {
  int sum = 1 << (weight_bits - 1);
  for (const int weight : weights) {
    sum += *pixel * weight;
    pixel += step;
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

std::uint8_t* row_of(RgbImage& image, int row) {
  return image.pixels.data() + std::size_t{3} * image.width * row;
}
const std::uint8_t* row_of(const RgbImage& image, int row) {
  return image.pixels.data() + std::size_t{3} * image.width * row;
}

RgbImage blank_image(int width, int height) {
  RgbImage image{width, height, {}};
  image.pixels.resize(std::size_t{3} * width * height);
  return image;
}

/// Rows [first, first + count) of `source` along rows: each becomes one of `columns` pixels.
RgbImage resize_rows(const RgbImage& image, const Rectangle& source, int first, int count,
                     const std::vector<Footprint>& columns) {
  RgbImage result = blank_image(static_cast<int>(columns.size()), count);
  for (int row = 0; row < count; ++row) {
    const auto* in = row_of(image, source.top + first + row) + 3 * source.left;
    auto* out = row_of(result, row);
    for (const auto& column : columns)
      for (int channel = 0; channel < 3; ++channel)
        *out++ = mean_of(in + 3 * column.first + channel, 3, column.weights);
  }
  return result;
}

/// Along columns; `image` begins with row `first` of what the footprints count from.
RgbImage resize_columns(const RgbImage& image, int first, const std::vector<Footprint>& rows) {
  RgbImage result = blank_image(image.width, static_cast<int>(rows.size()));
  const std::size_t row_bytes = std::size_t{3} * image.width;
  auto* out = result.pixels.data();
  for (const auto& row : rows) {
    const auto* in = row_of(image, row.first - first);
    for (std::size_t i = 0; i < row_bytes; ++i) *out++ = mean_of(in + i, row_bytes, row.weights);
  }
  return result;
}

}  // namespace

RgbImage resize(const RgbImage& image, const Rectangle& source, int width, int height,
                const Rectangle& window) {
  // A direction whose size stays gets footprints of one pixel of the full weight: a copy.
  const auto columns = footprints(window.left, window.width, source.width, width);
  const auto rows = footprints(window.top, window.height, source.height, height);
  const int first = rows.front().first;
  const int end = rows.back().first + static_cast<int>(rows.back().weights.size());
  return resize_columns(resize_rows(image, source, first, end - first, columns), first, rows);
}

}  // namespace troupe::mp
