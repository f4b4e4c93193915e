#pragma once

#include "data/rgb_image.hpp"

namespace troupe::mp {

/// Resizes the part `source` of an image to `width` x `height` and returns the part `window` of
/// that, without computing the rest. Both parts must lie inside.
///
/// Bilinear interpolation with antialiasing, as Pillow computes it (and with it torchvision's
/// Resize of its images), bit for bit: each output pixel is the mean of the input pixels under a
/// triangle, which is as wide as two pixels of the coarser of both grids; first along rows, then
/// along columns, each time with weights in 22-bit fixed point and a result rounded to 8 bits.
RgbImage resize(const RgbImage& image, const Rectangle& source, int width, int height,
                const Rectangle& window);

}  // namespace troupe::mp
