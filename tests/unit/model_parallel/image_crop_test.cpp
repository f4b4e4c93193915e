#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "data/image_crop.hpp"
#include "data/parallel_for.hpp"
#include "data/resize.hpp"
#include "unit/model_parallel/image_files.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

BOOST_AUTO_TEST_SUITE(image_crop)

BOOST_AUTO_TEST_CASE(random_crops_keep_their_bounds_and_spread_over_the_image) {
  constexpr int width = 300, height = 200;
  const CropBounds bounds;
  std::set<int> lefts, tops;
  double smallest = 1, largest = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    const auto part = random_crop(width, height, bounds, SampleRandom(1, 0, sample));
    BOOST_TEST(part.left >= 0);
    BOOST_TEST(part.top >= 0);
    BOOST_TEST(part.left + part.width <= width);
    BOOST_TEST(part.top + part.height <= height);
    const double scale = static_cast<double>(part.width) * part.height / (width * height);
    const double ratio = static_cast<double>(part.width) / part.height;
    // The sides are whole numbers of at least 50 pixels.
    BOOST_TEST(scale > bounds.min_scale * 0.97);
    BOOST_TEST(scale <= 1.0);
    BOOST_TEST(ratio > bounds.min_ratio * 0.97);
    BOOST_TEST(ratio < bounds.max_ratio * 1.03);
    smallest = std::min(smallest, scale);
    largest = std::max(largest, scale);
    lefts.insert(part.left);
    tops.insert(part.top);
  }
  BOOST_TEST(smallest < 0.09);
  BOOST_TEST(largest > 0.8);
  BOOST_TEST(lefts.size() > 150u);
  BOOST_TEST(tops.size() > 100u);
}

BOOST_AUTO_TEST_CASE(an_image_too_long_for_any_crop_gives_its_largest_part) {
  // 100 x 10: a part of the whole area would need a ratio of 10.
  CropBounds bounds;
  bounds.min_scale = 1;
  auto part = random_crop(100, 10, bounds, SampleRandom(1, 0, 0));
  BOOST_TEST(part.width == 13);  // 10 * 4 / 3
  BOOST_TEST(part.height == 10);
  BOOST_TEST(part.left == 43);
  part = random_crop(10, 100, bounds, SampleRandom(1, 0, 0));
  BOOST_TEST(part.width == 10);
  BOOST_TEST(part.height == 13);  // 10 / (3 / 4)
  BOOST_TEST(part.top == 43);
}

BOOST_AUTO_TEST_CASE(the_smallest_images_have_crops) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 50}, {50, 1}, {2, 1}})
    for (std::uint64_t sample = 0; sample < 50; ++sample) {
      const auto part = random_crop(width, height, {}, SampleRandom(1, 0, sample));
      BOOST_TEST(part.width >= 1);
      BOOST_TEST(part.height >= 1);
      BOOST_TEST(part.left + part.width <= width);
      BOOST_TEST(part.top + part.height <= height);
    }
}

BOOST_AUTO_TEST_CASE(the_shorter_side_is_resized_and_the_centre_is_cut) {
  const auto wide = with_shorter_side(640, 427, 256);
  BOOST_TEST(wide.width == 383);  // 256 * 640 / 427 = 383.7
  BOOST_TEST(wide.height == 256);
  const auto high = with_shorter_side(100, 300, 10);
  BOOST_TEST(high.width == 10);
  BOOST_TEST(high.height == 30);
  // (383 - 224) / 2 = 79.5 goes to the even 80, (255 - 224) / 2 = 15.5 to 16.
  BOOST_TEST(centre_square(wide, 224).left == 80);
  BOOST_TEST(centre_square({224, 255}, 224).top == 16);
  BOOST_TEST(centre_square({225, 227}, 224).left == 0);  // 0.5
  BOOST_TEST(centre_square({225, 227}, 224).top == 2);   // 1.5
}

BOOST_AUTO_TEST_CASE(a_window_of_a_resized_image_is_that_part_of_the_whole) {
  const auto image = picture(50, 40, 9);
  const Rectangle source{3, 4, 41, 33};
  for (const auto& [width, height] : {std::pair{20, 17}, {90, 70}, {41, 33}, {41, 10}}) {
    const auto whole = resize(image, source, width, height, {0, 0, width, height});
    const Rectangle window{5, 2, 11, 7};
    const auto part = resize(image, source, width, height, window);
    for (int row = 0; row < window.height; ++row)
      for (int i = 0; i < 3 * window.width; ++i)
        BOOST_TEST(part.pixels[row * 3 * window.width + i] ==
                   whole.pixels[(row + window.top) * 3 * width + 3 * window.left + i]);
  }
  // A size that stays is a copy.
  const auto same = resize(image, source, 41, 33, {0, 0, 41, 33});
  BOOST_TEST(same.pixels[0] == image.pixels[3 * (4 * 50 + 3)]);
  BOOST_TEST(same.pixels.back() == image.pixels[3 * (36 * 50 + 43) + 2]);
}

BOOST_AUTO_TEST_CASE(every_call_of_a_parallel_loop_is_made_once) {
  for (const std::size_t threads : {0, 1, 2, 7})
    for (const std::size_t count : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      parallel_for(count, threads, [&](std::size_t i) { ++calls[i]; });
      for (const auto& call : calls) BOOST_TEST(call == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
