#pragma once

#include "data/rgb_image.hpp"
#include "data/sample_random.hpp"

namespace troupe::mp {

/// Bounds of a random crop; all above 0, min at most max.
struct CropBounds {
  double min_scale = 0.08;  ///< share of the image's area
  double max_scale = 1;
  double min_ratio = 3.0 / 4.0;  ///< width to height
  double max_ratio = 4.0 / 3.0;
};

/// A part of the image of random area, shape and place: the rule of torchvision's RandomResizedCrop
/// (Szegedy et al., "Going Deeper with Convolutions", 2014), with random numbers of the sample's
/// own: ten tries, then the largest part in the centre whose ratio is allowed. Uses draws 0 to 39.
Rectangle random_crop(int width, int height, const CropBounds& bounds, const SampleRandom& random);

/// The first draw that `random_crop` leaves alone.
constexpr std::uint64_t draws_of_random_crop = 40;

/// Size of an image whose shorter side becomes `side`; the longer one is rounded down, as
/// torchvision's Resize. Images that `check_image_size` accepts fit.
struct ImageSize {
  int width = 0;
  int height = 0;
};
ImageSize with_shorter_side(int width, int height, int side);

/// The square in the middle of an image that is at least as large; halves round to even, as
/// torchvision's CenterCrop.
Rectangle centre_square(const ImageSize& image, int side);

}  // namespace troupe::mp
