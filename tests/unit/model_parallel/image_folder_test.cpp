#include <boost/test/unit_test.hpp>
#include <cmath>

#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/image_files.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;
using troupe::test::TemporaryDirectory;

namespace {

const auto cross_entropy = options_for(Loss::cross_entropy);

/// Classes "a" and "b" of pictures of 20 x 16, the nth of all with the shade 20 n.
class Folder {
 public:
  Folder() {
    add("a/0.png");
    add("a/1.jpg");
    add("a/sub/2.JPEG");
    add("b/3.png");
    add("b/4.png");
  }

  std::string add(const std::string& name) {
    const auto image = picture(20, 16, 20 * count_++);
    const bool png = name.find(".png") != std::string::npos;
    return write(name, png ? png_bytes(image) : jpeg_bytes(image));
  }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((directory_.path() / name).parent_path());
    return directory_.write(name, content).string();
  }

  std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string path() const { return directory_.path().string(); }

  std::string text(const std::string& more) const {
    return "image_folder { directory: '" + path() + "' " + more + " } ";
  }

 private:
  TemporaryDirectory directory_;
  int count_ = 0;
};

/// The shade of a sample's picture, by its blue channel in the middle.
int shade_of(const HostTensor& inputs, int sample) {
  const auto side = static_cast<std::size_t>(inputs.shape[2]);
  const auto middle = side * side * 2 + side * (side / 2) + side / 2;
  const float blue =
      inputs.as<float>()[static_cast<std::size_t>(sample) * 3 * side * side + middle];
  return static_cast<int>(std::lround(255 * blue / 20));
}

std::vector<int> shades_of(const Batch& batch) {
  std::vector<int> shades;
  for (std::uint32_t i = 0; i < batch.samples; ++i)
    shades.push_back(shade_of(batch.fields.at("inputs"), static_cast<int>(i)));
  return shades;
}

std::vector<std::int64_t> labels_of(const Batch& batch) {
  const auto* labels = batch.fields.at("targets").as<std::int64_t>();
  return {labels, labels + batch.samples};
}

const std::string augmented = "size: 8 random_crop {} flip_probability: 0.5 ";

/// A PNG file whose header claims this size, with the checksum that belongs to it, up to its
/// pixels.
std::string png_of_size(std::uint32_t width, std::uint32_t height) {
  std::string header = "IHDR";
  for (const auto number : {width, height})
    for (const int shift : {24, 16, 8, 0}) header += static_cast<char>(number >> shift);
  header += std::string("\x08\x02\0\0\0", 5);
  std::uint32_t crc = ~0U;
  for (const char c : header) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  crc = ~crc;
  std::string bytes = std::string("\x89PNG\r\n\x1A\n\0\0\0\r", 12) + header;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(crc >> shift);
  return bytes + std::string("\0\0\0\x10IDAT", 8);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image_folder_data)

BOOST_AUTO_TEST_CASE(classes_and_files_come_in_the_order_of_their_names) {
  Folder folder;
  folder.write("a/notes.txt", "no image");
  folder.write("list.png", "not in the directory of a class");
  auto source = open(folder.text("size: 16"), cross_entropy);
  BOOST_TEST(source->samples() == 5u);
  const auto all = batch(*source, 0, 0, 5);
  BOOST_TEST((all.fields.at("inputs").shape == Shape{5, 3, 16, 16}));
  BOOST_TEST((labels_of(all) == std::vector<std::int64_t>{0, 0, 0, 1, 1}));
  BOOST_TEST((shades_of(all) == std::vector<int>{0, 1, 2, 3, 4}));
  const auto fields = open(folder.text("size: 16"), options_for(Loss::none))->fields();
  BOOST_TEST((fields == std::vector<std::string>{"inputs"}));
}

BOOST_AUTO_TEST_CASE(the_centre_is_cut_out_of_the_resized_image) {
  const Folder folder;
  auto source = open(folder.text("size: 4 resize: 8"), options_for(Loss::none));
  const auto inputs = batch(*source, 0, 0, 1).fields.at("inputs");
  // 20 x 16 becomes 10 x 8, of which rows 2 to 5 and columns 3 to 6 stay: the middle of a ramp from
  // 0 to 1 over 8 rows, or 10 columns.
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column) {
      BOOST_TEST(std::abs(inputs.as<float>()[4 * row + column] - (row + 2.5 - 0.25) / 8) < 0.01);
      BOOST_TEST(std::abs(inputs.as<float>()[16 + 4 * row + column] - (column + 3.5 - 0.25) / 10) <
                 0.01);
    }
}

BOOST_AUTO_TEST_CASE(a_flip_mirrors_the_columns) {
  const Folder folder;
  auto plain = open(folder.text("size: 8"), options_for(Loss::none));
  auto flipped = open(folder.text("size: 8 flip_probability: 1"), options_for(Loss::none));
  const auto a = batch(*plain, 0, 0, 5).fields.at("inputs");
  const auto b = batch(*flipped, 0, 0, 5).fields.at("inputs");
  for (int row = 0; row < 5 * 3 * 8; ++row)
    for (int column = 0; column < 8; ++column)
      BOOST_TEST(a.as<float>()[8 * row + column] == b.as<float>()[8 * row + 7 - column]);
  BOOST_TEST(!same_bytes(a, b));
}

BOOST_AUTO_TEST_CASE(samples_do_not_depend_on_workers_or_on_what_was_asked_before) {
  const Folder folder;
  auto one = open(folder.text(augmented + "workers: 1"), cross_entropy);
  auto many = open(folder.text(augmented + "workers: 7"), cross_entropy);
  const auto whole = batch(*one, 3, 0, 5);
  for (int i = 0; i < 3; ++i) {
    const auto again = batch(*many, 3, 0, 5);
    BOOST_TEST(same_bytes(whole.fields.at("inputs"), again.fields.at("inputs")));
    BOOST_TEST(same_bytes(whole.fields.at("targets"), again.fields.at("targets")));
  }
  const auto part = batch(*many, 3, 1, 2).fields.at("inputs");
  BOOST_TEST(same_bytes(whole.fields.at("inputs").rows(2, 4), part));
  BOOST_TEST(!same_bytes(whole.fields.at("inputs"), batch(*one, 4, 0, 5).fields.at("inputs")));
  auto other = open(folder.text(augmented), options_for(Loss::cross_entropy, v1::DTYPE_FLOAT32, 7));
  BOOST_TEST(!same_bytes(whole.fields.at("inputs"), batch(*other, 3, 0, 5).fields.at("inputs")));
  // In another order, each sample looks the same.
  auto shuffled = open(folder.text(augmented) + "shuffle: true", cross_entropy);
  const auto mixed = batch(*shuffled, 3, 0, 5);
  std::vector<int> shades = shades_of(mixed);
  for (int i = 0; i < 5; ++i)
    BOOST_TEST(same_bytes(mixed.fields.at("inputs").rows(i, i + 1),
                          whole.fields.at("inputs").rows(shades[i], shades[i] + 1)));
}

BOOST_AUTO_TEST_CASE(precision_decides_the_type_of_pixels) {
  const Folder folder;
  const auto text = folder.text("size: 8 mean: [0.5, 0, 0] std: [0.5, 1, 1]");
  const auto narrow = batch(*open(text, options_for(Loss::none)), 0, 0, 5).fields.at("inputs");
  const auto wide = batch(*open(text, options_for(Loss::none, v1::DTYPE_FLOAT64)), 0, 0, 5);
  const auto* doubles = wide.fields.at("inputs").as<double>();
  double smallest = 0;
  for (int i = 0; i < 5 * 3 * 64; ++i) {
    BOOST_TEST(narrow.as<float>()[i] == static_cast<float>(doubles[i]));
    smallest = std::min(smallest, doubles[i]);
  }
  BOOST_TEST(smallest < -0.8);
}

BOOST_AUTO_TEST_CASE(a_corrupt_file_is_an_error_that_names_it) {
  Folder folder;
  const auto expect = [&](const std::string& name, const std::string& content,
                          const std::string& what) {
    const auto path = folder.write(name, content);
    auto source = open(folder.text("size: 8"), cross_entropy);
    const auto result = source->batch(0, 0, static_cast<std::uint32_t>(source->samples()));
    BOOST_REQUIRE_MESSAGE(!result.ok(), "accepted: " << name);
    expect_error(result.error(), path, what);
    // Before it, all is well.
    BOOST_TEST(source->batch(0, 0, 4).ok());
    std::filesystem::remove(path);
  };
  const auto jpeg = jpeg_bytes(picture(20, 16, 1));
  const auto png = png_bytes(picture(20, 16, 1));
  expect("b/x.png", "", "an empty file");
  expect("b/x.jpg", "GIF89a", "neither JPEG nor PNG");
  expect("b/x.jpg", jpeg.substr(0, 3), "cannot decode the JPEG file");
  expect("b/x.jpg", jpeg.substr(0, jpeg.size() / 2), "cannot decode the JPEG file");
  expect("b/x.jpg", jpeg.substr(0, jpeg.size() - 20), "Premature end");
  expect("b/x.png", png.substr(0, 8), "the file ends early");
  expect("b/x.png", png.substr(0, png.size() / 2), "the file ends early");
  expect("b/x.png", png.substr(0, png.size() - 1), "the file ends early");
  auto wrong = png;
  wrong[png.size() / 2] = static_cast<char>(wrong[png.size() / 2] ^ 1);
  expect("b/x.png", wrong, "cannot decode the PNG file");
  expect("b/x.png", png_of_size(0, 5), "cannot decode the PNG file");
  expect("b/x.png", png_of_size(900000, 900000), "over the limit");
  expect("b/x.png", png_of_size(900000, 2), "too elongated");
  // The first in the order of the batch, whoever finds it.
  folder.write("b/5.png", "one");
  folder.write("b/6.png", "another");
  auto source = open(folder.text("size: 8 workers: 4"), cross_entropy);
  for (int i = 0; i < 5; ++i)
    expect_error(source->batch(0, 0, 7).error(), folder.file("b/5.png"), "neither");
}

BOOST_AUTO_TEST_CASE(damage_anywhere_is_an_error_or_an_image_of_some_size) {
  const auto image = picture(20, 16, 1);
  int errors = 0;
  for (const auto& bytes : {png_bytes(image), jpeg_bytes(image)})
    for (std::size_t i = 0; i < bytes.size(); ++i)
      for (const int flips : {0x01, 0x80, 0xFF}) {
        auto damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ flips);
        const auto decoded = decode_image(damaged, "file");
        if (!decoded.ok()) {
          expect_error(decoded.error(), "file", "file");
          ++errors;
          continue;
        }
        BOOST_TEST(decoded->pixels.size() ==
                   std::size_t{3} * static_cast<std::size_t>(decoded->width * decoded->height));
      }
  BOOST_TEST(errors > 100);
}

BOOST_AUTO_TEST_CASE(a_file_is_known_by_its_bytes_and_not_by_its_name) {
  Folder folder;
  folder.write("b/5.jpg", png_bytes(picture(20, 16, 100)));
  auto source = open(folder.text("size: 16"), cross_entropy);
  BOOST_TEST(shades_of(batch(*source, 0, 0, 6)).back() == 5);
}

BOOST_AUTO_TEST_CASE(corrupt_files_are_skipped_and_counted_when_asked_to) {
  const Folder folder;
  folder.write("a/1.jpg", "damaged");
  folder.write("b/3.png", "");
  const auto text = folder.text("size: 16 on_corrupt: ON_CORRUPT_SKIP ");
  auto source = open(text, cross_entropy);
  const auto skipped = source->skipped();
  BOOST_REQUIRE(skipped);
  BOOST_TEST(skipped->count() == 0u);
  for (int i = 0; i < 2; ++i) {
    const auto all = batch(*source, 0, 0, 5);
    BOOST_TEST((shades_of(all) == std::vector<int>{0, 2, 2, 4, 4}));
    BOOST_TEST((labels_of(all) == std::vector<std::int64_t>{0, 0, 0, 1, 1}));
    // Counted once, however often their turn comes.
    BOOST_TEST(skipped->count() == 2u);
  }
  const auto entries = skipped->entries();
  BOOST_TEST(entries[0].first == folder.file("a/1.jpg"));
  BOOST_TEST(entries[0].second == "neither JPEG nor PNG");
  BOOST_TEST(entries[1].first == folder.file("b/3.png"));
  BOOST_TEST(entries[1].second == "an empty file");
  // The next readable file may be the first of all.
  folder.write("b/4.png", "");
  BOOST_TEST((shades_of(batch(*source, 0, 1, 3)) == std::vector<int>{0, 0}));
  for (const auto* name : {"a/0.png", "a/sub/2.JPEG"}) folder.write(name, "");
  expect_error(source->batch(0, 0, 2).error(), "data.image_folder", "none of the files");
  BOOST_TEST(!open(folder.text("size: 16"), cross_entropy)->skipped());
  expect_error(text, options_for(Loss::none), "data.image_folder.on_corrupt", "a row for each");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_gone_is_as_corrupt_as_any) {
  const Folder folder;
  auto source = open(folder.text("size: 16 on_corrupt: ON_CORRUPT_SKIP"), cross_entropy);
  auto strict = open(folder.text("size: 16"), cross_entropy);
  std::filesystem::remove(folder.file("a/0.png"));
  BOOST_TEST((shades_of(batch(*source, 0, 0, 2)) == std::vector<int>{1, 1}));
  BOOST_TEST(source->skipped()->count() == 1u);
  expect_error(strict->batch(0, 0, 2).error(), folder.file("a/0.png"), "cannot open");
}

BOOST_AUTO_TEST_CASE(directories_are_checked) {
  const Folder folder;
  expect_error("image_folder { directory: '/nonexistent' size: 8 }", cross_entropy,
               "data.image_folder.directory", "no directory /nonexistent");
  expect_error("image_folder { directory: '" + folder.path() + "/b' size: 8 }", cross_entropy,
               folder.file("b"), "no directory of a class");
  std::filesystem::create_directory(folder.file("c"));
  expect_error(folder.text("size: 8"), cross_entropy, folder.file("c"), "no JPEG or PNG file");
  const auto foreign = folder.write("c/x.WebP", "");
  expect_error(folder.text("size: 8"), cross_entropy, foreign, "only JPEG and PNG");
  std::filesystem::remove(foreign);
  // A link that leads back to where it lies has no end.
  std::filesystem::create_directory_symlink(folder.file("c"), folder.file("c/again"));
  expect_error(folder.text("size: 8"), cross_entropy, folder.file("c"), "c");
}

BOOST_AUTO_TEST_CASE(sizes_and_bounds_are_checked) {
  const Folder folder;
  const auto expect = [&](const std::string& more, const std::string& field,
                          const std::string& what) {
    expect_error(folder.text(more), cross_entropy, "data.image_folder" + field, what);
  };
  expect("", ".size", "no size");
  expect("size: 8 resize: 7", ".resize", "at least 8");
  expect("size: 8 resize: 9 random_crop {}", ".resize", "leave it away");
  expect("size: 8 random_crop { min_scale: 0.5 max_scale: 0.4 }", ".random_crop.min_scale",
         "larger than max_scale");
  expect("size: 8 random_crop { min_ratio: 2 }", ".random_crop.min_ratio", "larger than max_ratio");
  expect("size: 8 random_crop { max_ratio: inf }", ".random_crop", "no positive number");
  expect("size: 8 mean: [1, 2]", ".mean", "three channels");
  expect_error(folder.text("size: 8"), options_for(Loss::mse), "data.image_folder",
               "write the loss cross_entropy");
}

BOOST_AUTO_TEST_SUITE_END()
