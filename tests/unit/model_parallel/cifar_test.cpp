#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;
using troupe::test::TemporaryDirectory;

namespace {

constexpr int side = 32;
constexpr int plane = side * side;

/// A pixel that tells where it stands: all rows, columns and channels of an image differ.
int pixel_at(int image, int channel, int row, int column) {
  return (image * 50 + channel * 80 + row * 2 + column * 5) % 256;
}

/// Records of the format: label bytes, then the planes.
std::string records(const std::vector<std::string>& labels, int first_image = 0) {
  std::string bytes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bytes += labels[i];
    for (int channel = 0; channel < 3; ++channel)
      for (int row = 0; row < side; ++row)
        for (int column = 0; column < side; ++column)
          bytes +=
              static_cast<char>(pixel_at(first_image + static_cast<int>(i), channel, row, column));
  }
  return bytes;
}

/// CIFAR-10 of two images a file, labelled 0, 1, ..., 9; three test images.
void write_cifar_10(const TemporaryDirectory& directory) {
  for (int i = 0; i < 5; ++i)
    directory.write("data_batch_" + std::to_string(i + 1) + ".bin",
                    records({std::string(1, static_cast<char>(2 * i)),
                             std::string(1, static_cast<char>(2 * i + 1))},
                            2 * i));
  directory.write("test_batch.bin", records({"\3", "\2", "\1"}));
}

std::string cifar(const TemporaryDirectory& directory, const std::string& more) {
  return "cifar { directory: '" + directory.path().string() + "' " + more + " } ";
}

const std::string as_stored = " mean: [0, 0, 0] std: [1, 1, 1] ";

int stored_pixel(const HostTensor& inputs, int sample, int channel, int row, int column) {
  return static_cast<int>(
      std::lround(255 * inputs.as<float>()[((sample * 3 + channel) * side + row) * side + column]));
}

const auto cross_entropy = options_for(Loss::cross_entropy);

}  // namespace

BOOST_AUTO_TEST_SUITE(cifar_data)

BOOST_AUTO_TEST_CASE(training_files_follow_each_other) {
  const TemporaryDirectory directory;
  write_cifar_10(directory);
  auto source = open(cifar(directory, "version: VERSION_CIFAR_10" + as_stored), cross_entropy);
  BOOST_TEST(source->samples() == 10u);
  const auto all = batch(*source, 0, 0, 10);
  BOOST_TEST((all.fields.at("inputs").shape == Shape{10, 3, side, side}));
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(all.fields.at("targets").as<std::int64_t>()[i] == i);
    for (int channel = 0; channel < 3; ++channel)
      for (const int place : {0, 17, 31})
        BOOST_TEST(stored_pixel(all.fields.at("inputs"), i, channel, place, 31 - place) ==
                   pixel_at(i, channel, place, 31 - place));
  }
  auto test = open(cifar(directory, "version: VERSION_CIFAR_10 split: SPLIT_TEST"), cross_entropy);
  BOOST_TEST(test->samples() == 3u);
  BOOST_TEST(batch(*test, 0, 0, 3).fields.at("targets").as<std::int64_t>()[0] == 3);
  auto three = open(cifar(directory, "version: VERSION_CIFAR_10 limit: 3"), cross_entropy);
  BOOST_TEST(three->samples() == 3u);
  auto inputs_only = open(cifar(directory, "version: VERSION_CIFAR_10"), options_for(Loss::none));
  BOOST_TEST(batch(*inputs_only, 0, 0, 1).fields.size() == 1u);
}

BOOST_AUTO_TEST_CASE(cifar_100_has_a_coarse_and_a_fine_label) {
  const TemporaryDirectory directory;
  directory.write("train.bin", records({"\x13\x63", "\x01\x02"}));
  directory.write("test.bin", records({"\x05\x06"}));
  const auto labels = [&](const std::string& more) {
    auto source = open(cifar(directory, "version: VERSION_CIFAR_100 " + more), cross_entropy);
    const auto all = batch(*source, 0, 0, static_cast<std::uint32_t>(source->samples()));
    const auto* first = all.fields.at("targets").as<std::int64_t>();
    return std::vector<std::int64_t>(first, first + all.samples);
  };
  BOOST_TEST((labels("") == std::vector<std::int64_t>{0x63, 2}));
  BOOST_TEST((labels("label: LABEL_COARSE") == std::vector<std::int64_t>{0x13, 1}));
  BOOST_TEST((labels("split: SPLIT_TEST") == std::vector<std::int64_t>{6}));
}

BOOST_AUTO_TEST_CASE(pixels_are_normalised_by_channel) {
  const TemporaryDirectory directory;
  write_cifar_10(directory);
  auto source =
      open(cifar(directory, "version: VERSION_CIFAR_10 mean: [0.1, 0.2, 0.3] std: [0.5, 0.25, 2]"),
           options_for(Loss::cross_entropy, v1::DTYPE_FLOAT64));
  const auto inputs = batch(*source, 0, 0, 2).fields.at("inputs");
  const double mean[] = {0.1, 0.2, 0.3};
  const double std[] = {0.5, 0.25, 2};
  for (int channel = 0; channel < 3; ++channel)
    BOOST_TEST(inputs.as<double>()[3 * plane + channel * plane + 5 * side + 7] ==
                   (pixel_at(1, channel, 5, 7) / 255.0 - mean[channel]) / std[channel],
               boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(crops_show_the_padded_image_and_flips_mirror_it) {
  const TemporaryDirectory directory;
  write_cifar_10(directory);
  auto source = open(
      cifar(directory, "version: VERSION_CIFAR_10 padding: 3 flip_probability: 0.5" + as_stored),
      cross_entropy);
  std::set<std::pair<int, int>> corners;
  int flips = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    const auto inputs = batch(*source, epoch, 0, 10).fields.at("inputs");
    for (int image = 0; image < 10; ++image) {
      // Which of the 7 * 7 * 2 views is it?
      int found = 0;
      for (int top = -3; top <= 3; ++top)
        for (int left = -3; left <= 3; ++left)
          for (const bool flip : {false, true}) {
            bool equal = true;
            for (int channel = 0; channel < 3 && equal; ++channel)
              for (int row = 0; row < side && equal; ++row)
                for (int i = 0; i < side && equal; ++i) {
                  const int y = top + row;
                  const int x = left + (flip ? side - 1 - i : i);
                  const bool inside = y >= 0 && y < side && x >= 0 && x < side;
                  equal = stored_pixel(inputs, image, channel, row, i) ==
                          (inside ? pixel_at(image, channel, y, x) : 0);
                }
            if (!equal) continue;
            ++found;
            corners.insert({top, left});
            flips += flip ? 1 : 0;
          }
      BOOST_TEST(found == 1);
    }
  }
  // 200 draws of 49 corners leave out one in 60 on average; flips have a deviation of 7.
  BOOST_TEST(corners.size() > 40u);
  BOOST_TEST(flips > 60);
  BOOST_TEST(flips < 140);
}

BOOST_AUTO_TEST_CASE(a_view_depends_on_seed_epoch_and_sample_only) {
  const TemporaryDirectory directory;
  write_cifar_10(directory);
  const auto text = cifar(directory, "version: VERSION_CIFAR_10 padding: 4 flip_probability: 0.5");
  auto a = open(text, cross_entropy);
  auto b = open(text, cross_entropy);
  const auto whole = batch(*a, 2, 0, 10).fields.at("inputs");
  batch(*b, 0, 1, 3);
  BOOST_TEST(same_bytes(whole.rows(4, 6), batch(*b, 2, 2, 2).fields.at("inputs")));
  BOOST_TEST(same_bytes(whole, batch(*b, 2, 0, 10).fields.at("inputs")));
  BOOST_TEST(!same_bytes(whole, batch(*a, 3, 0, 10).fields.at("inputs")));
  auto other = open(text, options_for(Loss::cross_entropy, v1::DTYPE_FLOAT32, 43));
  BOOST_TEST(!same_bytes(whole, batch(*other, 2, 0, 10).fields.at("inputs")));
  // A shuffled sample looks as it does in file order.
  auto shuffled = open(text + "shuffle: true", cross_entropy);
  const auto mixed = batch(*shuffled, 2, 0, 10);
  for (int i = 0; i < 10; ++i) {
    const auto number = mixed.fields.at("targets").as<std::int64_t>()[i];
    BOOST_TEST(
        same_bytes(mixed.fields.at("inputs").rows(i, i + 1), whole.rows(number, number + 1)));
  }
}

BOOST_AUTO_TEST_CASE(damaged_files_and_wrong_configs_are_named) {
  const TemporaryDirectory directory;
  write_cifar_10(directory);
  const auto file = directory.path() / "data_batch_3.bin";
  const auto text = cifar(directory, "version: VERSION_CIFAR_10");
  expect_error(cifar(directory, "version: VERSION_CIFAR_10 label: LABEL_COARSE"), cross_entropy,
               "data.cifar.label", "no coarse labels");
  expect_error(cifar(directory, ""), cross_entropy, "data.cifar.version", "VERSION_CIFAR_10 or");
  expect_error(text, options_for(Loss::mse), "data.cifar", "write the loss cross_entropy");
  expect_error("cifar { directory: '/nonexistent' version: VERSION_CIFAR_10 }", cross_entropy,
               "data.cifar.directory", "no directory /nonexistent");
  expect_error(cifar(directory, "version: VERSION_CIFAR_10 std: [1, 0, 1]"), cross_entropy,
               "data.cifar.std", "not a positive number");
  expect_error(cifar(directory, "version: VERSION_CIFAR_10 mean: 1"), cross_entropy,
               "data.cifar.mean", "three channels");
  expect_error(cifar(directory, "version: VERSION_CIFAR_10 mean: [0, nan, 0]"), cross_entropy,
               "data.cifar.mean", "not a finite number");
  expect_error(cifar(directory, "version: VERSION_CIFAR_100"), cross_entropy, "train.bin",
               "cannot open");

  std::filesystem::resize_file(file, 2 * 3073 - 1);
  expect_error(text, cross_entropy, file.string(), "no whole number of CIFAR-10 records of 3073");
  std::filesystem::resize_file(file, 0);
  expect_error(text, cross_entropy, file.string(), "0 bytes are no whole number");
  directory.write("data_batch_3.bin", records({"\1", "\n"}));
  expect_error(text, cross_entropy, file.string(), "record 1 has the label 10 of 10");
  std::filesystem::remove(file);
  expect_error(text, cross_entropy, file.string(), "cannot open");
}

BOOST_AUTO_TEST_SUITE_END()
