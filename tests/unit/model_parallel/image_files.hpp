#pragma once

#include <string>

#include "data/rgb_image.hpp"

namespace troupe::mp::test {

/// A picture of smooth colours in which no two places look alike; `shade` tells pictures apart.
RgbImage picture(int width, int height, int shade);

/// The bytes of files with this image, written by libpng and libjpeg.
std::string png_bytes(const RgbImage& image);
std::string jpeg_bytes(const RgbImage& image);

}  // namespace troupe::mp::test
