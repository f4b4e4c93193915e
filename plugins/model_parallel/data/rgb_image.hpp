#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/result.hpp"

namespace troupe::mp {

/// A colour image: rows of pixels of red, green and blue, one byte each.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// A rectangle of pixels, its upper left corner at (left, top).
struct Rectangle {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

/// Decodes a JPEG file: grey and CMYK become RGB as Pillow does it, with the same library and so to
/// the same bits. `where` names the file in errors. Damage that loses pixels is an error.
Result<RgbImage> decode_jpeg(const std::string& bytes, const std::string& where);

/// Decodes a PNG file: grey, palettes and 16 bits become RGB of 8 bits, transparency is left out.
Result<RgbImage> decode_png(const std::string& bytes, const std::string& where);

/// Decodes a JPEG or PNG file by its first bytes, whatever it is called.
Result<RgbImage> decode_image(const std::string& bytes, const std::string& where);

/// Checks an image's size before memory is taken for it.
Result<void> check_image_size(std::uint64_t width, std::uint64_t height, const std::string& where);

}  // namespace troupe::mp
