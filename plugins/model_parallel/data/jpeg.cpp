#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include "data/rgb_image.hpp"

// libjpeg reports errors by a function that must not return. Ours jumps back to `decompress`, which
// therefore has no object with a destructor between the jump's ends.

namespace troupe::mp {

namespace {

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands back its address
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave_jpeg(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->text);
  std::longjmp(errors->back, 1);
}

/// What does not harm the pixels: bytes between segments, unusual versions and colour markers.
bool is_harmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR ||
         warning == JWRN_ADOBE_XFORM;
}

/// The library would go on with grey pixels where data is missing.
void judge_jpeg_message(j_common_ptr jpeg, int level) {
  constexpr int warning_level = -1;
  if (level == warning_level && !is_harmless(jpeg->err->msg_code)) leave_jpeg(jpeg);
}

void print_no_message(j_common_ptr) {}

/// Pillow's conversion of CMYK, stored inverted as Adobe does.
std::uint8_t without_black(std::uint8_t inverted_ink, std::uint8_t inverted_black) {
  const unsigned product = (255U - inverted_ink) * inverted_black + 128;
  return static_cast<std::uint8_t>(inverted_black - (((product >> 8) + product) >> 8));
}

class JpegDecoder {
 public:
  JpegDecoder() {
    jpeg_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = leave_jpeg;
    errors_.manager.emit_message = judge_jpeg_message;
    errors_.manager.output_message = print_no_message;
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() {
    if (created_) jpeg_destroy_decompress(&jpeg_);
  }

  Result<RgbImage> decode(const std::string& bytes, const std::string& where) {
    const auto fault = [&] {
      return bad_input(where, std::string("cannot decode the JPEG file: ") + errors_.text,
                       "copy or download it again");
    };
    if (!begin(bytes)) return fault();
    TROUPE_TRY(check_image_size(jpeg_.output_width, jpeg_.output_height, where));
    RgbImage image;
    image.width = static_cast<int>(jpeg_.output_width);
    image.height = static_cast<int>(jpeg_.output_height);
    const auto components = static_cast<std::size_t>(jpeg_.out_color_components);
    row_bytes_ = jpeg_.output_width * components;
    image.pixels.resize(row_bytes_ * jpeg_.output_height);
    if (!decompress(image.pixels.data())) return fault();
    if (components == 4) drop_black(image);
    return image;
  }

 private:
  /// Reads the header and decides the colours of the output.
  bool begin(const std::string& bytes) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    created_ = true;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.out_color_space = jpeg_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_calc_output_dimensions(&jpeg_);
    return true;
  }

  bool decompress(std::uint8_t* pixels) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = pixels + row_bytes_ * jpeg_.output_scanline;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  static void drop_black(RgbImage& image) {
    const std::size_t count = image.pixels.size() / 4;
    auto* out = image.pixels.data();
    for (std::size_t i = 0; i < count; ++i) {
      const auto* in = image.pixels.data() + 4 * i;
      const std::uint8_t black = in[3];
      for (int channel = 0; channel < 3; ++channel) *out++ = without_black(in[channel], black);
    }
    image.pixels.resize(3 * count);
  }

  JpegErrors errors_;
  jpeg_decompress_struct jpeg_;
  bool created_ = false;
  std::size_t row_bytes_ = 0;
};

}  // namespace

Result<RgbImage> decode_jpeg(const std::string& bytes, const std::string& where) {
  return JpegDecoder().decode(bytes, where);
}

}  // namespace troupe::mp
