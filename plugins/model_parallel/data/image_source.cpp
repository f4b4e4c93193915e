#include "data/image_source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/convert.hpp"
#include "data/idx.hpp"
#include "data/sample_order.hpp"
#include "data/tensor_tools.hpp"

namespace troupe::mp {

namespace {

constexpr const char* fashion_mnist_directory = "/usr/share/datasets/fashion-mnist";
/// Mean and deviation over the 60,000 training images, pixels in [0, 1].
constexpr double fashion_mnist_mean = 0.2860;
constexpr double fashion_mnist_std = 0.3530;

/// Where the images are and how they are normalised.
struct ImageFiles {
  std::filesystem::path images;
  std::filesystem::path labels;
  double mean = 0;
  double std = 1;
  std::uint64_t limit = 0;
};

class ImageSource final : public DataSource {
 public:
  ImageSource(HostTensor images, HostTensor labels, const ImageFiles& files, SampleOrder order,
              const DataOptions& options)
      : images_(std::move(images)),
        labels_(std::move(labels)),
        order_(std::move(order)),
        options_(options),
        sample_shape_(images_.shape.begin() + 1, images_.shape.end()) {
    if (sample_shape_.size() == 2) sample_shape_.insert(sample_shape_.begin(), 1);
    for (std::size_t pixel = 0; pixel < values_.size(); ++pixel)
      values_[pixel] = (static_cast<double>(pixel) / 255.0 - files.mean) / files.std;
  }

  std::uint64_t samples() const override { return order_.samples(); }
  std::vector<std::string> fields() const override { return fields_of(options_); }
  DataBounds bounds() const override {
    if (labels_.dtype != v1::DTYPE_UINT8 || labels_.data.empty()) return {};
    const auto* labels = labels_.as<std::uint8_t>();
    return {{}, *std::max_element(labels, labels + labels_.data.size()) + 1};
  }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    TROUPE_ASSIGN(const auto numbers, order_.batch(epoch, index, batch_size));
    Batch batch;
    batch.first_sample = index * batch_size;
    batch.samples = static_cast<std::uint32_t>(numbers.size());
    if (options_.dtype == v1::DTYPE_FLOAT64) {
      TROUPE_ASSIGN(batch.fields["inputs"], normalised<double>(numbers));
    } else {
      TROUPE_ASSIGN(batch.fields["inputs"], normalised<float>(numbers));
    }
    if (options_.need_targets) {
      TROUPE_ASSIGN(batch.fields["targets"],
                    convert(gather_rows(labels_, numbers), v1::DTYPE_INT64));
    }
    return batch;
  }

 private:
  template <class T>
  Result<HostTensor> normalised(const std::vector<std::uint64_t>& numbers) const {
    TROUPE_ASSIGN(HostTensor tensor,
                  allocate_samples(options_.dtype, numbers.size(), sample_shape_, options_.where));
    std::array<T, 256> table;
    for (std::size_t pixel = 0; pixel < table.size(); ++pixel)
      table[pixel] = static_cast<T>(values_[pixel]);
    const std::size_t pixels = images_.data.size() / static_cast<std::size_t>(images_.shape[0]);
    auto* out = reinterpret_cast<T*>(tensor.data.mutable_data());
    for (const std::uint64_t number : numbers) {
      const auto* image = images_.as<std::uint8_t>() + number * pixels;
      for (std::size_t i = 0; i < pixels; ++i) *out++ = table[image[i]];
    }
    return tensor;
  }

  HostTensor images_;
  HostTensor labels_;  ///< empty when targets are not needed
  SampleOrder order_;
  DataOptions options_;
  Shape sample_shape_;
  std::array<double, 256> values_;  ///< what each pixel value becomes
};

/// `name` or, if that is not there, `name`.gz.
std::filesystem::path plain_or_compressed(const std::filesystem::path& name) {
  std::error_code error;
  if (std::filesystem::exists(name, error)) return name;
  return name.string() + ".gz";
}

Result<ImageFiles> fashion_mnist_files(const v1::FashionMnistData& config,
                                       const std::string& where) {
  const std::filesystem::path directory =
      config.directory().empty() ? fashion_mnist_directory : config.directory();
  if (std::error_code error; !std::filesystem::is_directory(directory, error))
    return bad_input(where + ".directory", "no directory " + directory.string(),
                     "install the package dataset-fashion-mnist, or write where its files are");
  const std::string prefix = config.split() == v1::FashionMnistData::SPLIT_TEST ? "t10k" : "train";
  ImageFiles files;
  files.images = plain_or_compressed(directory / (prefix + "-images-idx3-ubyte"));
  files.labels = plain_or_compressed(directory / (prefix + "-labels-idx1-ubyte"));
  files.mean = fashion_mnist_mean;
  files.std = fashion_mnist_std;
  files.limit = config.limit();
  return files;
}

Result<ImageFiles> idx_files(const v1::IdxData& config, const DataOptions& options) {
  const std::string where = options.where + ".idx";
  if (options.need_targets && config.labels().empty())
    return bad_input(where + ".labels", "no labels", "write the file of the labels");
  ImageFiles files;
  files.images = config.images();
  files.labels = config.labels();
  files.mean = config.mean();
  if (config.std() != 0) files.std = config.std();
  if (!(files.std > 0) || !std::isfinite(files.std))
    return bad_input(where + ".std", "not a positive number");
  if (!std::isfinite(files.mean)) return bad_input(where + ".mean", "not a number");
  files.limit = config.limit();
  return files;
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_images(const v1::Data& data, const DataOptions& options) {
  const bool fashion = data.has_fashion_mnist();
  const std::string where = options.where + (fashion ? ".fashion_mnist" : ".idx");
  TROUPE_TRY(check_class_targets(options, where));
  TROUPE_ASSIGN(const ImageFiles files, fashion ? fashion_mnist_files(data.fashion_mnist(), where)
                                                : idx_files(data.idx(), options));
  TROUPE_ASSIGN(HostTensor images, read_idx(files.images, files.limit));
  if (images.shape.size() != 3 && images.shape.size() != 4)
    return bad_input(files.images.string(), "shape " + to_string(images.shape) + " is no images",
                     "[images, rows, columns] or [images, channels, rows, columns]");
  if (images.data.empty()) return bad_input(files.images.string(), "holds no images");
  HostTensor labels;
  if (options.need_targets) {
    TROUPE_ASSIGN(labels, read_idx(files.labels, files.limit));
    if (labels.shape.size() != 1 || labels.shape[0] != images.shape[0])
      return bad_input(files.labels.string(), "labels of shape " + to_string(labels.shape) +
                                                  " beside " + std::to_string(images.shape[0]) +
                                                  " images");
  }
  SampleOrder order(static_cast<std::uint64_t>(images.shape[0]), data.shuffle(), options.seed);
  return std::unique_ptr<DataSource>(std::make_unique<ImageSource>(
      std::move(images), std::move(labels), files, std::move(order), options));
}

}  // namespace troupe::mp
