#include "data/rgb_image.hpp"

#include <algorithm>

namespace troupe::mp {

namespace {

/// Twice Pillow's limit for warnings, where it refuses images as decompression bombs.
constexpr std::uint64_t most_image_pixels = 2 * 89'478'485;
/// That of the longest image that JPEG can hold; a resized one's sides then fit an int.
constexpr std::uint64_t most_elongated = 65535;

bool begins_with(const std::string& bytes, const char* start) { return bytes.rfind(start, 0) == 0; }

}  // namespace

Result<void> check_image_size(std::uint64_t width, std::uint64_t height, const std::string& where) {
  if (width == 0 || height == 0) return bad_input(where, "an image without pixels");
  if (width > most_image_pixels / height)
    return bad_input(where,
                     "an image of " + std::to_string(width) + " x " + std::to_string(height) +
                         " pixels, over the limit of " + std::to_string(most_image_pixels),
                     "make it smaller");
  if (std::max(width, height) / std::min(width, height) > most_elongated)
    return bad_input(where,
                     "an image of " + std::to_string(width) + " x " + std::to_string(height) +
                         " pixels, too elongated",
                     "cut it into parts");
  return {};
}

Result<RgbImage> decode_image(const std::string& bytes, const std::string& where) {
  if (begins_with(bytes, "\xFF\xD8\xFF")) return decode_jpeg(bytes, where);
  if (begins_with(bytes, "\x89PNG\r\n\x1A\n")) return decode_png(bytes, where);
  if (bytes.empty()) return bad_input(where, "an empty file", "copy or download it again");
  return bad_input(where, "neither JPEG nor PNG", "convert it, or take it away");
}

}  // namespace troupe::mp
