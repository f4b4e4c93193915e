// Images as Pillow and torchvision read and prepare them.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "data/image_crop.hpp"
#include "data/safetensors.hpp"
#include "parity/python.hpp"
#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;
using troupe::test::TemporaryDirectory;

namespace {

HostTensor read(const TemporaryDirectory& directory, const std::string& file,
                const std::string& name) {
  auto opened = SafetensorsFile::open(directory.path() / file);
  if (!opened.ok()) BOOST_FAIL(opened.error().to_string());
  return opened->tensor(name).value();
}

/// The whole data set as one batch.
Batch all_of(const std::string& text, std::uint64_t epoch = 0) {
  auto source = open(text, options_for(Loss::cross_entropy));
  return batch(*source, epoch, 0, static_cast<std::uint32_t>(source->samples()));
}

/// Pixels in [0, 1] that must be these bytes exactly.
void expect_pixels(const HostTensor& inputs, const HostTensor& expected) {
  BOOST_REQUIRE((inputs.shape == expected.shape));
  const std::size_t image = expected.data.size() / static_cast<std::size_t>(expected.shape[0]);
  for (std::size_t i = 0; i < expected.data.size(); i += image) {
    int different = 0;
    for (std::size_t j = i; j < i + image; ++j)
      different += std::lround(255 * inputs.as<float>()[j]) != expected.as<std::uint8_t>()[j];
    BOOST_TEST(different == 0,
               "image " << i / image << ": " << different << " of " << image << " values differ");
  }
}

void expect_close(const HostTensor& inputs, const HostTensor& expected) {
  BOOST_REQUIRE((inputs.shape == expected.shape));
  double largest = 0;
  for (std::size_t i = 0; i < expected.data.size() / sizeof(float); ++i)
    largest = std::max(
        largest, std::abs(static_cast<double>(inputs.as<float>()[i]) - expected.as<float>()[i]));
  BOOST_TEST(largest < 1e-6);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image_parity)

BOOST_AUTO_TEST_CASE(image_folders_are_those_of_torchvision) {
  const TemporaryDirectory directory;
  run_python("images.py", {"make", directory.path().string()});
  const auto folder = [&](const std::string& more) {
    return "image_folder { directory: '" + (directory.path() / "images").string() + "' " + more +
           " }";
  };
  const std::string centre = "size: 32 resize: 40 ";
  const auto plain = all_of(folder(centre));
  BOOST_TEST(
      same_bytes(plain.fields.at("targets"), read(directory, "centre.safetensors", "labels")));
  expect_pixels(plain.fields.at("inputs"), read(directory, "centre.safetensors", "pixels"));
  const auto normalised =
      all_of(folder(centre + "mean: [0.485, 0.456, 0.406] std: [0.229, 0.224, 0.225]"));
  expect_close(normalised.fields.at("inputs"), read(directory, "centre.safetensors", "normalised"));

  // The same parts, cut and resized and mirrored by torchvision.
  constexpr std::uint64_t epoch = 2;
  const auto sizes = read(directory, "centre.safetensors", "sizes");
  std::vector<std::int64_t> boxes;
  for (std::int64_t i = 0; i < sizes.shape[0]; ++i) {
    const auto* size = sizes.as<std::int64_t>() + 2 * i;
    const auto box = random_crop(static_cast<int>(size[0]), static_cast<int>(size[1]), {},
                                 SampleRandom(42, epoch, static_cast<std::uint64_t>(i)));
    boxes.insert(boxes.end(), {box.left, box.top, box.width, box.height});
  }
  BOOST_REQUIRE(write_safetensors(
                    directory.path() / "boxes.safetensors",
                    {{"boxes", make<std::int64_t>(v1::DTYPE_INT64, {sizes.shape[0], 4}, boxes)}})
                    .ok());
  run_python("images.py", {"crop", directory.path().string()});
  const auto crops = all_of(folder("size: 24 random_crop {} flip_probability: 1"), epoch);
  expect_pixels(crops.fields.at("inputs"), read(directory, "crops.safetensors", "pixels"));
}

BOOST_AUTO_TEST_CASE(cifar_files_mean_what_they_mean_to_torchvision) {
  const TemporaryDirectory directory;
  run_python("images.py", {"cifar", directory.path().string()});
  const auto expect = [&](const std::string& name, const std::string& config) {
    BOOST_TEST_CONTEXT(name) {
      const auto all =
          all_of("cifar { directory: '" + directory.path().string() + "' " + config + " }");
      BOOST_TEST(same_bytes(all.fields.at("targets"),
                            read(directory, "cifar.safetensors", name + ".labels")));
      expect_close(all.fields.at("inputs"), read(directory, "cifar.safetensors", name + ".inputs"));
    }
  };
  expect("train_10", "version: VERSION_CIFAR_10");
  expect("fine", "version: VERSION_CIFAR_100 split: SPLIT_TEST");
  expect("coarse", "version: VERSION_CIFAR_100 split: SPLIT_TEST label: LABEL_COARSE");
}

BOOST_AUTO_TEST_SUITE_END()
