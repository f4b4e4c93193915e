#include "data/pixel_scale.hpp"

#include <cmath>

namespace troupe::mp {

namespace {

using Numbers = google::protobuf::RepeatedField<double>;
using OfChannels = std::array<double, rgb_channels>;

Result<OfChannels> of_channels(const Numbers& written, const OfChannels& otherwise,
                               const std::string& where) {
  if (written.empty()) return otherwise;
  if (written.size() != rgb_channels)
    return bad_input(where, std::to_string(written.size()) + " numbers for three channels",
                     "write one each for red, green and blue");
  OfChannels numbers;
  for (int i = 0; i < rgb_channels; ++i) {
    if (!std::isfinite(written[i])) return bad_input(where, "not a finite number");
    numbers[static_cast<std::size_t>(i)] = written[i];
  }
  return numbers;
}

}  // namespace

Result<PixelScale> pixel_scale(const Numbers& mean, const Numbers& std, const PixelScale& otherwise,
                               const std::string& where) {
  PixelScale scale;
  TROUPE_ASSIGN(scale.mean, of_channels(mean, otherwise.mean, where + ".mean"));
  TROUPE_ASSIGN(scale.std, of_channels(std, otherwise.std, where + ".std"));
  for (const double divisor : scale.std)
    if (!(divisor > 0)) return bad_input(where + ".std", "not a positive number");
  return scale;
}

}  // namespace troupe::mp
