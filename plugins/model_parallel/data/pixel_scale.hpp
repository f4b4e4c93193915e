#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <google/protobuf/repeated_field.h>

#include "troupe/result.hpp"

namespace troupe::mp {

/// Channels of a colour image: red, green, blue.
constexpr int rgb_channels = 3;

/// How the pixels of each channel become numbers: (pixel / 255 - mean) / std.
struct PixelScale {
  std::array<double, rgb_channels> mean{};
  std::array<double, rgb_channels> std{};
};

/// The scale that a config writes, or `otherwise` where it writes nothing. `where` is the path of
/// the message with the fields `mean` and `std`.
Result<PixelScale> pixel_scale(const google::protobuf::RepeatedField<double>& mean,
                               const google::protobuf::RepeatedField<double>& std,
                               const PixelScale& otherwise, const std::string& where);

/// What each pixel value becomes, computed in double and rounded once.
template <class T>
class PixelTables {
 public:
  explicit PixelTables(const PixelScale& scale) {
    for (std::size_t channel = 0; channel < tables_.size(); ++channel)
      for (std::size_t pixel = 0; pixel < tables_[channel].size(); ++pixel)
        tables_[channel][pixel] = static_cast<T>(
            (static_cast<double>(pixel) / 255.0 - scale.mean[channel]) / scale.std[channel]);
  }

  const std::array<T, 256>& operator[](int channel) const {
    return tables_[static_cast<std::size_t>(channel)];
  }

 private:
  std::array<std::array<T, 256>, rgb_channels> tables_;
};

}  // namespace troupe::mp
