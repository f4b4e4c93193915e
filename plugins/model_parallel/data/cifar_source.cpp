#include "data/cifar_source.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "data/mapped_file.hpp"
#include "data/pixel_scale.hpp"
#include "data/sample_order.hpp"
#include "data/sample_random.hpp"
#include "data/tensor_tools.hpp"

namespace troupe::mp {

namespace {

constexpr int cifar_side = 32;
constexpr int cifar_plane = cifar_side * cifar_side;
constexpr std::size_t cifar_pixels = rgb_channels * cifar_plane;

/// Draws of a sample's random numbers.
enum CifarDraw : std::uint64_t { draw_row, draw_column, draw_flip };

/// What tells the two data sets apart.
struct CifarFormat {
  const char* name;
  std::vector<std::string> files;
  std::size_t label_bytes;   ///< before the pixels
  std::size_t label_offset;  ///< of the label in use
  int classes;               ///< that it tells apart
  PixelScale scale;          ///< mean and deviation of the 50,000 training images
  std::size_t record_bytes() const { return label_bytes + cifar_pixels; }
};

CifarFormat cifar_10(bool test) {
  CifarFormat format{"CIFAR-10", {}, 1, 0, 10, {}};
  format.scale = {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}};
  if (test) {
    format.files = {"test_batch.bin"};
    return format;
  }
  for (int i = 1; i <= 5; ++i) format.files.push_back("data_batch_" + std::to_string(i) + ".bin");
  return format;
}

CifarFormat cifar_100(bool test, bool coarse) {
  CifarFormat format{"CIFAR-100", {test ? "test.bin" : "train.bin"}, 2, 1, 100, {}};
  format.scale = {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}};
  if (coarse) {
    format.label_offset = 0;
    format.classes = 20;
  }
  return format;
}

Result<CifarFormat> cifar_format(const v1::CifarData& config, const std::string& where) {
  const bool test = config.split() == v1::CifarData::SPLIT_TEST;
  const bool coarse = config.label() == v1::CifarData::LABEL_COARSE;
  switch (config.version()) {
    case v1::CifarData::VERSION_CIFAR_10:
      if (coarse)
        return bad_input(where + ".label", "CIFAR-10 has no coarse labels",
                         "leave the label away, or write VERSION_CIFAR_100");
      return cifar_10(test);
    case v1::CifarData::VERSION_CIFAR_100: return cifar_100(test, coarse);
    default:
      return bad_input(where + ".version", "no version",
                       "write VERSION_CIFAR_10 or VERSION_CIFAR_100");
  }
}

/// Records of mapped files, numbered through.
class CifarRecords {
 public:
  explicit CifarRecords(CifarFormat format) : format_(std::move(format)) {}

  /// Takes the records of one file, at most `most` of them, and checks their labels.
  Result<void> add(const std::filesystem::path& path, std::uint64_t most) {
    const std::string where = path.string();
    TROUPE_ASSIGN(const Blob file, map_file(path));
    const std::size_t record = format_.record_bytes();
    if (file.empty() || file.size() % record != 0)
      return bad_input(where,
                       std::to_string(file.size()) + " bytes are no whole number of " +
                           format_.name + " records of " + std::to_string(record) + " bytes",
                       "copy or download it again, in the binary version");
    const std::uint64_t count = std::min<std::uint64_t>(file.size() / record, most);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto* start = reinterpret_cast<const std::uint8_t*>(file.data()) + i * record;
      if (start[format_.label_offset] >= format_.classes)
        return bad_input(where,
                         "record " + std::to_string(i) + " has the label " +
                             std::to_string(start[format_.label_offset]) + " of " +
                             std::to_string(format_.classes),
                         std::string("the file is damaged, or not of ") + format_.name);
      records_.push_back(start);
    }
    files_.push_back(file);
    return {};
  }

  std::uint64_t size() const { return records_.size(); }
  int classes() const { return format_.classes; }
  std::uint8_t label(std::uint64_t number) const { return records_[number][format_.label_offset]; }
  const std::uint8_t* pixels(std::uint64_t number) const {
    return records_[number] + format_.label_bytes;
  }

 private:
  CifarFormat format_;
  std::vector<Blob> files_;  ///< keep the records mapped
  std::vector<const std::uint8_t*> records_;
};

/// Which part of the padded image a sample shows.
struct CifarView {
  int top = 0;  ///< its first row in the image; negative: in the padding
  int left = 0;
  bool flip = false;
};

template <class T>
void write_view(const std::uint8_t* pixels, const CifarView& view, const PixelTables<T>& tables,
                T* out) {
  for (int channel = 0; channel < rgb_channels; ++channel) {
    const auto& table = tables[channel];
    for (int row = view.top; row < view.top + cifar_side; ++row)
      for (int i = 0; i < cifar_side; ++i) {
        const int column = view.left + (view.flip ? cifar_side - 1 - i : i);
        const bool inside = row >= 0 && row < cifar_side && column >= 0 && column < cifar_side;
        *out++ = table[inside ? pixels[channel * cifar_plane + row * cifar_side + column] : 0];
      }
  }
}

class CifarSource final : public DataSource {
 public:
  CifarSource(CifarRecords records, const v1::CifarData& config, const PixelScale& scale,
              SampleOrder order, const DataOptions& options)
      : records_(std::move(records)),
        padding_(static_cast<int>(config.padding())),
        flip_probability_(config.flip_probability()),
        scale_(scale),
        order_(std::move(order)),
        options_(options) {}

  std::uint64_t samples() const override { return order_.samples(); }
  std::vector<std::string> fields() const override { return fields_of(options_); }
  DataBounds bounds() const override { return {{}, records_.classes()}; }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    TROUPE_ASSIGN(const auto numbers, order_.batch(epoch, index, batch_size));
    Batch batch;
    batch.first_sample = index * batch_size;
    batch.samples = static_cast<std::uint32_t>(numbers.size());
    if (options_.dtype == v1::DTYPE_FLOAT64) {
      TROUPE_ASSIGN(batch.fields["inputs"], inputs<double>(epoch, numbers));
    } else {
      TROUPE_ASSIGN(batch.fields["inputs"], inputs<float>(epoch, numbers));
    }
    if (options_.need_targets) {
      TROUPE_ASSIGN(batch.fields["targets"], targets(numbers));
    }
    return batch;
  }

 private:
  template <class T>
  Result<HostTensor> inputs(std::uint64_t epoch, const std::vector<std::uint64_t>& numbers) const {
    TROUPE_ASSIGN(HostTensor tensor,
                  allocate_samples(options_.dtype, numbers.size(),
                                   {rgb_channels, cifar_side, cifar_side}, options_.where));
    const PixelTables<T> tables(scale_);
    auto* out = reinterpret_cast<T*>(tensor.data.mutable_data());
    for (const std::uint64_t number : numbers) {
      write_view(records_.pixels(number), view_of(epoch, number), tables, out);
      out += cifar_pixels;
    }
    return tensor;
  }

  CifarView view_of(std::uint64_t epoch, std::uint64_t number) const {
    const SampleRandom random(options_.seed, epoch, number);
    const auto offsets = static_cast<std::uint64_t>(2 * padding_ + 1);
    CifarView view;
    view.top = static_cast<int>(random.index(draw_row, offsets)) - padding_;
    view.left = static_cast<int>(random.index(draw_column, offsets)) - padding_;
    view.flip = random.chance(draw_flip, flip_probability_);
    return view;
  }

  Result<HostTensor> targets(const std::vector<std::uint64_t>& numbers) const {
    TROUPE_ASSIGN(HostTensor tensor,
                  allocate_samples(v1::DTYPE_INT64, numbers.size(), {}, options_.where));
    auto* out = reinterpret_cast<std::int64_t*>(tensor.data.mutable_data());
    for (const std::uint64_t number : numbers) *out++ = records_.label(number);
    return tensor;
  }

  CifarRecords records_;
  int padding_;
  double flip_probability_;
  PixelScale scale_;
  SampleOrder order_;
  DataOptions options_;
};

}  // namespace

Result<std::unique_ptr<DataSource>> open_cifar(const v1::Data& data, const DataOptions& options) {
  const v1::CifarData& config = data.cifar();
  const std::string where = options.where + ".cifar";
  TROUPE_TRY(check_class_targets(options, where));
  TROUPE_ASSIGN(const CifarFormat format, cifar_format(config, where));
  TROUPE_ASSIGN(const PixelScale scale,
                pixel_scale(config.mean(), config.std(), format.scale, where));
  if (std::error_code error; !std::filesystem::is_directory(config.directory(), error))
    return bad_input(where + ".directory", "no directory " + config.directory(),
                     std::string("write where the .bin files of ") + format.name + " are");
  CifarRecords records(format);
  const std::uint64_t most = config.limit() != 0 ? config.limit() : UINT64_MAX;
  for (const auto& name : format.files) {
    if (records.size() == most) break;
    TROUPE_TRY(
        records.add(std::filesystem::path(config.directory()) / name, most - records.size()));
  }
  SampleOrder order(records.size(), data.shuffle(), options.seed);
  return std::unique_ptr<DataSource>(
      std::make_unique<CifarSource>(std::move(records), config, scale, std::move(order), options));
}

}  // namespace troupe::mp
