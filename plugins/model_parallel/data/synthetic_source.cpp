#include "data/synthetic_source.hpp"

#include <cstring>
#include <utility>

#include "core/loss_config.hpp"
#include "core/random.hpp"
#include "data/sample_order.hpp"
#include "data/tensor_tools.hpp"

namespace troupe::mp {

namespace {

class SyntheticSource final : public DataSource {
 public:
  SyntheticSource(const v1::Data& data, DataOptions options, Shape shape, std::uint64_t elements)
      : config_(data.synthetic()),
        options_(std::move(options)),
        shape_(std::move(shape)),
        elements_(elements),
        order_(config_.samples(), data.shuffle(), options_.seed),
        inputs_key_(stream_key(options_.seed, "data.synthetic.inputs")),
        targets_key_(stream_key(options_.seed, "data.synthetic.targets")) {}

  std::uint64_t samples() const override { return config_.samples(); }
  std::vector<std::string> fields() const override { return fields_of(options_); }
  DataBounds bounds() const override {
    if (config_.targets_case() != v1::SyntheticData::kClasses) return {};
    return {{}, std::int64_t{config_.classes()}};
  }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    const bool endless = samples() == 0;
    std::vector<std::uint64_t> numbers(batch_size);
    std::vector<std::uint64_t> labelled(batch_size);
    if (endless) {
      for (std::uint32_t row = 0; row < batch_size; ++row) {
        numbers[row] = index * batch_size + row;
        labelled[row] = row;
      }
    } else {
      TROUPE_ASSIGN(numbers, order_.batch(epoch, index, batch_size));
      labelled = numbers;
    }
    Batch batch;
    batch.first_sample = index * batch_size;
    batch.samples = static_cast<std::uint32_t>(numbers.size());
    TROUPE_ASSIGN(batch.fields["inputs"], inputs(numbers));
    if (options_.need_targets) {
      TROUPE_ASSIGN(batch.fields["targets"], targets(labelled));
    }
    return batch;
  }

 private:
  Result<HostTensor> inputs(const std::vector<std::uint64_t>& numbers) const {
    TROUPE_ASSIGN(HostTensor tensor, allocate_samples(options_.dtype, numbers.size(), shape_,
                                                      options_.where + ".synthetic.shape"));
    auto* bytes = tensor.data.mutable_data();
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const std::uint64_t first = numbers[row] * elements_;
      if (options_.dtype == v1::DTYPE_FLOAT64)
        fill_normal(inputs_key_, first, elements_,
                    reinterpret_cast<double*>(bytes) + row * elements_);
      else
        fill_normal(inputs_key_, first, elements_,
                    reinterpret_cast<float*>(bytes) + row * elements_);
    }
    return tensor;
  }

  Result<HostTensor> targets(const std::vector<std::uint64_t>& labelled) const {
    if (config_.targets_case() == v1::SyntheticData::kClasses) {
      TROUPE_ASSIGN(HostTensor tensor, allocate_samples(v1::DTYPE_INT64, labelled.size(), {},
                                                        options_.where + ".synthetic.classes"));
      auto* out = reinterpret_cast<std::int64_t*>(tensor.data.mutable_data());
      for (std::size_t row = 0; row < labelled.size(); ++row)
        out[row] =
            static_cast<std::int64_t>(index_at(targets_key_, labelled[row], config_.classes()));
      return tensor;
    }
    const std::uint64_t classes = config_.one_hot_classes();
    TROUPE_ASSIGN(
        HostTensor tensor,
        allocate_samples(options_.dtype, labelled.size(), {static_cast<std::int64_t>(classes)},
                         options_.where + ".synthetic.one_hot_classes"));
    auto* bytes = tensor.data.mutable_data();
    // All bits zero are the number 0 in both types.
    if (tensor.data.size() != 0) std::memset(bytes, 0, tensor.data.size());
    for (std::size_t row = 0; row < labelled.size(); ++row) {
      const std::uint64_t hot = row * classes + index_at(targets_key_, labelled[row], classes);
      if (options_.dtype == v1::DTYPE_FLOAT64)
        reinterpret_cast<double*>(bytes)[hot] = 1.0;
      else
        reinterpret_cast<float*>(bytes)[hot] = 1.0f;
    }
    return tensor;
  }

  v1::SyntheticData config_;
  DataOptions options_;
  Shape shape_;
  std::uint64_t elements_;  ///< of one sample
  SampleOrder order_;
  std::uint64_t inputs_key_;
  std::uint64_t targets_key_;
};

/// One-hot rows are for losses that compare numbers, class indices for cross-entropy.
Result<void> check_targets(const v1::SyntheticData& config, const DataOptions& options) {
  const std::string where = options.where + ".synthetic";
  if (!options.need_targets) return {};
  switch (config.targets_case()) {
    case v1::SyntheticData::kClasses:
      if (config.classes() == 0) return bad_input(where + ".classes", "no classes");
      if (wants_numbers(options.loss))
        return bad_input(where + ".classes", describe(options.loss) + " cannot use class indices",
                         "write one_hot_classes, or the loss cross_entropy");
      return {};
    case v1::SyntheticData::kOneHotClasses:
      if (config.one_hot_classes() == 0) return bad_input(where + ".one_hot_classes", "no classes");
      if (wants_class_indices(options.loss))
        return bad_input(where + ".one_hot_classes", "cross-entropy cannot use one-hot rows",
                         "write classes, or the loss mse");
      return {};
    default: return bad_input(where, "no targets", "write one_hot_classes or classes");
  }
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_synthetic(const v1::Data& data,
                                                   const DataOptions& options) {
  const std::string where = options.where + ".synthetic.shape";
  Shape shape(data.synthetic().shape().begin(), data.synthetic().shape().end());
  if (shape.empty()) return bad_input(where, "no shape", "for example [3, 128, 128]");
  for (const auto dimension : shape)
    if (dimension < 1) return bad_input(where, "dimension below 1 in " + to_string(shape));
  const auto elements = element_count(shape);
  if (!elements) return bad_input(where, elements.error().what);
  TROUPE_TRY(check_targets(data.synthetic(), options));
  return std::unique_ptr<DataSource>(
      std::make_unique<SyntheticSource>(data, options, std::move(shape), *elements));
}

}  // namespace troupe::mp
