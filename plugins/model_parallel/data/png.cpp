#include <csetjmp>
#include <cstring>

#include <png.h>

#include "data/rgb_image.hpp"

// libpng reports errors by a function that must not return. Ours jumps back to the functions that
// call setjmp, which therefore have no object with a destructor between the jump's ends.

namespace troupe::mp {

namespace {

class PngDecoder {
 public:
  explicit PngDecoder(const std::string& bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  Result<RgbImage> decode(const std::string& where) {
    if (info_ == nullptr) return internal_error(where, "libpng cannot start");
    const auto fault = [&] {
      return bad_input(where, std::string("cannot decode the PNG file: ") + text_,
                       "copy or download it again");
    };
    if (!begin()) return fault();
    TROUPE_TRY(check_image_size(width_, height_, where));
    RgbImage image;
    image.width = static_cast<int>(width_);
    image.height = static_cast<int>(height_);
    image.pixels.resize(std::size_t{3} * width_ * height_);
    std::vector<png_bytep> rows(height_);
    for (std::size_t row = 0; row < rows.size(); ++row)
      rows[row] = image.pixels.data() + row * 3 * width_;
    if (!read(rows.data())) return fault();
    return image;
  }

 private:
  [[noreturn]] static void fail(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self->text_, text, sizeof self->text_ - 1);
    std::longjmp(self->back_, 1);
  }

  static void ignore(png_structp, png_const_charp) {}

  static void take_bytes(png_structp png, png_bytep data, png_size_t size) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self->bytes_.size() - self->position_) png_error(png, "the file ends early");
    std::memcpy(data, self->bytes_.data() + self->position_, size);
    self->position_ += size;
  }

  /// Reads the header and asks for RGB of 8 bits.
  bool begin() {
    if (setjmp(back_) != 0) return false;
    png_set_read_fn(png_, this, take_bytes);
    png_read_info(png_, info_);
    width_ = png_get_image_width(png_, info_);
    height_ = png_get_image_height(png_, info_);
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != std::size_t{3} * width_)
      png_error(png_, "not an image of RGB");
    return true;
  }

  bool read(png_bytepp rows) {
    if (setjmp(back_) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  const std::string& bytes_;
  std::size_t position_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf back_;
  char text_[200] = {};
  png_uint_32 width_ = 0;
  png_uint_32 height_ = 0;
};

}  // namespace

Result<RgbImage> decode_png(const std::string& bytes, const std::string& where) {
  return PngDecoder(bytes).decode(where);
}

}  // namespace troupe::mp
