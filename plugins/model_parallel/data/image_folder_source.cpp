#include "data/image_folder_source.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "data/folder_listing.hpp"
#include "data/image_crop.hpp"
#include "data/parallel_for.hpp"
#include "data/pixel_scale.hpp"
#include "data/read_file.hpp"
#include "data/resize.hpp"
#include "data/sample_order.hpp"
#include "data/sample_random.hpp"
#include "data/tensor_tools.hpp"

namespace troupe::mp {

namespace {

constexpr std::uint64_t most_image_file_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t draw_of_mirror = draws_of_random_crop;
constexpr std::uint32_t most_default_workers = 8;

/// From the image of a file to the pixels of a sample.
struct ImageRecipe {
  int size = 0;
  int shorter_side = 0;
  std::optional<CropBounds> random;  ///< instead of the centre
  double flip_probability = 0;
  PixelScale scale;

  /// `size` x `size` pixels, not mirrored yet.
  RgbImage cut(const RgbImage& image, const SampleRandom& numbers) const {
    if (random) {
      const Rectangle part = random_crop(image.width, image.height, *random, numbers);
      return resize(image, part, size, size, {0, 0, size, size});
    }
    const ImageSize resized = with_shorter_side(image.width, image.height, shorter_side);
    return resize(image, {0, 0, image.width, image.height}, resized.width, resized.height,
                  centre_square(resized, size));
  }
};

/// Pixels become planes of numbers: [channel, row, column].
template <class T>
void write_planes(const RgbImage& image, bool mirror, const PixelTables<T>& tables, T* out) {
  for (int channel = 0; channel < rgb_channels; ++channel) {
    const auto& table = tables[channel];
    for (int row = 0; row < image.height; ++row)
      for (int i = 0; i < image.width; ++i) {
        const int column = mirror ? image.width - 1 - i : i;
        *out++ =
            table[image.pixels[static_cast<std::size_t>(row * image.width + column) * rgb_channels +
                               static_cast<std::size_t>(channel)]];
      }
  }
}

class ImageFolderSource final : public DataSource {
 public:
  ImageFolderSource(FolderListing listing, const ImageRecipe& recipe, std::uint32_t workers,
                    bool skip, SampleOrder order, const DataOptions& options)
      : listing_(std::move(listing)),
        recipe_(recipe),
        workers_(workers),
        order_(std::move(order)),
        options_(options),
        skipped_(skip ? std::make_shared<SkippedFiles>() : nullptr) {}

  std::uint64_t samples() const override { return order_.samples(); }
  std::vector<std::string> fields() const override { return fields_of(options_); }
  DataBounds bounds() const override {
    return {{}, static_cast<std::int64_t>(listing_.classes().size())};
  }
  std::shared_ptr<const SkippedFiles> skipped() const override { return skipped_; }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    TROUPE_ASSIGN(const auto numbers, order_.batch(epoch, index, batch_size));
    if (options_.dtype == v1::DTYPE_FLOAT64)
      return build<double>(epoch, numbers, index * batch_size);
    return build<float>(epoch, numbers, index * batch_size);
  }

 private:
  template <class T>
  Result<Batch> build(std::uint64_t epoch, const std::vector<std::uint64_t>& numbers,
                      std::uint64_t first_sample) const {
    TROUPE_ASSIGN(HostTensor inputs,
                  allocate_samples(options_.dtype, numbers.size(),
                                   {rgb_channels, recipe_.size, recipe_.size}, options_.where));
    TROUPE_ASSIGN(HostTensor targets,
                  allocate_samples(v1::DTYPE_INT64, numbers.size(), {}, options_.where));
    const PixelTables<T> tables(recipe_.scale);
    const std::size_t pixels = inputs.data.size() / sizeof(T) / numbers.size();
    auto* out = reinterpret_cast<T*>(inputs.data.mutable_data());
    auto* labels = reinterpret_cast<std::int64_t*>(targets.data.mutable_data());
    std::vector<std::optional<Error>> errors(numbers.size());
    parallel_for(numbers.size(), workers_, [&](std::size_t row) {
      auto label = write_sample(epoch, numbers[row], tables, out + row * pixels);
      if (label)
        labels[row] = *label;
      else
        errors[row] = label.error();
    });
    // The first in the order of the batch, whichever thread was first.
    for (const auto& error : errors)
      if (error) return *error;
    Batch batch;
    batch.first_sample = first_sample;
    batch.samples = static_cast<std::uint32_t>(numbers.size());
    batch.fields["inputs"] = std::move(inputs);
    if (options_.need_targets) batch.fields["targets"] = std::move(targets);
    return batch;
  }

  /// Writes a sample and returns its label. In place of a file that cannot be read, where those are
  /// skipped, comes the next one that can, with the random numbers of the sample it stands for.
  template <class T>
  Result<std::int64_t> write_sample(std::uint64_t epoch, std::uint64_t number,
                                    const PixelTables<T>& tables, T* out) const {
    const SampleRandom random(options_.seed, epoch, number);
    for (std::uint64_t i = 0; i < listing_.images(); ++i) {
      const std::uint64_t candidate = (number + i) % listing_.images();
      auto image = cut_image(candidate, random);
      if (image) {
        write_planes(*image, random.chance(draw_of_mirror, recipe_.flip_probability), tables, out);
        return listing_.label(candidate);
      }
      if (!skipped_ || image.error().code != ErrorCode::bad_input) return image.error();
      skipped_->add(image.error().where, image.error().what);
    }
    return bad_input(options_.where + ".image_folder", "none of the files can be read",
                     "see events.jsonl for what is wrong with each");
  }

  Result<RgbImage> cut_image(std::uint64_t number, const SampleRandom& random) const {
    const std::string path = listing_.path(number).string();
    try {
      TROUPE_ASSIGN(const std::string bytes, read_file(path, most_image_file_bytes));
      TROUPE_ASSIGN(const RgbImage image, decode_image(bytes, path));
      return recipe_.cut(image, random);
    } catch (const std::exception& exception) {
      return internal_error(path, exception.what());
    }
  }

  FolderListing listing_;
  ImageRecipe recipe_;
  std::uint32_t workers_;
  SampleOrder order_;
  DataOptions options_;
  std::shared_ptr<SkippedFiles> skipped_;  ///< null where a corrupt file is an error
};

Result<CropBounds> crop_bounds(const v1::RandomResizedCrop& config, const std::string& where) {
  CropBounds bounds;
  const auto take = [](double written, double& bound) {
    if (written != 0) bound = written;
  };
  take(config.min_scale(), bounds.min_scale);
  take(config.max_scale(), bounds.max_scale);
  take(config.min_ratio(), bounds.min_ratio);
  take(config.max_ratio(), bounds.max_ratio);
  if (bounds.min_scale > bounds.max_scale)
    return bad_input(where + ".min_scale", "larger than max_scale", "exchange them");
  if (bounds.min_ratio > bounds.max_ratio)
    return bad_input(where + ".min_ratio", "larger than max_ratio", "exchange them");
  for (const double bound :
       {bounds.min_scale, bounds.max_scale, bounds.min_ratio, bounds.max_ratio})
    if (!(bound > 0) || !std::isfinite(bound))
      return bad_input(where, "a bound that is no positive number");
  return bounds;
}

Result<ImageRecipe> image_recipe(const v1::ImageFolderData& config, const std::string& where) {
  if (config.size() == 0)
    return bad_input(where + ".size", "no size", "write the height and width of a sample");
  ImageRecipe recipe;
  recipe.size = static_cast<int>(config.size());
  recipe.shorter_side = config.resize() != 0 ? static_cast<int>(config.resize()) : recipe.size;
  if (recipe.shorter_side < recipe.size)
    return bad_input(where + ".resize", "smaller than size, which is cut out of it",
                     "make it at least " + std::to_string(recipe.size));
  if (config.has_random_crop()) {
    if (config.resize() != 0)
      return bad_input(where + ".resize", "a random crop is resized to size at once",
                       "leave it away");
    TROUPE_ASSIGN(recipe.random, crop_bounds(config.random_crop(), where + ".random_crop"));
  }
  recipe.flip_probability = config.flip_probability();
  const PixelScale unscaled{{0, 0, 0}, {1, 1, 1}};
  TROUPE_ASSIGN(recipe.scale, pixel_scale(config.mean(), config.std(), unscaled, where));
  return recipe;
}

std::uint32_t image_workers(const v1::ImageFolderData& config) {
  if (config.workers() != 0) return config.workers();
  return std::clamp(std::thread::hardware_concurrency(), 1U, most_default_workers);
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_image_folder(const v1::Data& data,
                                                      const DataOptions& options) {
  const v1::ImageFolderData& config = data.image_folder();
  const std::string where = options.where + ".image_folder";
  TROUPE_TRY(check_class_targets(options, where));
  TROUPE_ASSIGN(const ImageRecipe recipe, image_recipe(config, where));
  const bool skip = config.on_corrupt() == v1::ImageFolderData::ON_CORRUPT_SKIP;
  if (skip && !options.need_targets)
    return bad_input(where + ".on_corrupt", "a prediction has a row for each file",
                     "take the files away that cannot be read");
  if (std::error_code error; !std::filesystem::is_directory(config.directory(), error))
    return bad_input(where + ".directory", "no directory " + config.directory(),
                     "write the one that holds those of the classes");
  TROUPE_ASSIGN(FolderListing listing, FolderListing::read(config.directory()));
  SampleOrder order(listing.images(), data.shuffle(), options.seed);
  return std::unique_ptr<DataSource>(std::make_unique<ImageFolderSource>(
      std::move(listing), recipe, image_workers(config), skip, std::move(order), options));
}

}  // namespace troupe::mp
