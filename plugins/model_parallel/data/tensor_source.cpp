#include "data/tensor_source.hpp"

#include <utility>

#include "core/convert.hpp"
#include "core/loss_config.hpp"
#include "data/safetensors.hpp"
#include "data/sample_order.hpp"
#include "data/tensor_tools.hpp"

namespace troupe::mp {

namespace {

/// A tensor of the file and the type in which the batch carries it.
struct Field {
  HostTensor tensor;
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;
};

class TensorSource final : public DataSource {
 public:
  TensorSource(std::map<std::string, Field> fields, SampleOrder order)
      : fields_(std::move(fields)), order_(std::move(order)) {}

  std::uint64_t samples() const override { return order_.samples(); }

  std::vector<std::string> fields() const override {
    std::vector<std::string> names;
    for (const auto& [name, field] : fields_) names.push_back(name);
    return names;
  }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    TROUPE_ASSIGN(const auto numbers, order_.batch(epoch, index, batch_size));
    Batch batch;
    batch.first_sample = index * batch_size;
    batch.samples = static_cast<std::uint32_t>(numbers.size());
    for (const auto& [name, field] : fields_) {
      const auto first = static_cast<std::int64_t>(numbers.front());
      const auto count = static_cast<std::int64_t>(numbers.size());
      const HostTensor rows = order_.shuffled() ? gather_rows(field.tensor, numbers)
                                                : field.tensor.rows(first, first + count);
      TROUPE_ASSIGN(batch.fields[name], convert(rows, field.dtype));
    }
    return batch;
  }

 private:
  std::map<std::string, Field> fields_;
  SampleOrder order_;
};

/// Integers (as int64), or probabilities of each class, for cross-entropy; floating targets for the
/// other losses.
Result<v1::DType> target_type(const HostTensor& targets, const DataOptions& options,
                              const std::string& where) {
  const v1::DType stored = targets.dtype;
  const bool probabilities =
      options.loss.has_cross_entropy() && is_floating(stored) && targets.shape.size() == 2;
  if (wants_class_indices(options.loss) && !is_integer(stored) && !probabilities)
    return bad_input(where,
                     to_string(stored) + " targets of shape " + to_string(targets.shape) + ", " +
                         describe(options.loss) + " needs class indices",
                     "store int64, or for cross-entropy probabilities [samples, classes]");
  if (wants_numbers(options.loss) && !is_floating(stored))
    return bad_input(where,
                     to_string(stored) + " targets, " + describe(options.loss) + " needs floats",
                     "store float32, or use the loss cross_entropy");
  if (is_floating(stored)) return options.dtype;
  return is_integer(stored) ? v1::DTYPE_INT64 : stored;
}

/// Floats come in the job's precision, everything else as it is stored.
v1::DType carried_type(v1::DType stored, const DataOptions& options) {
  return is_floating(stored) ? options.dtype : stored;
}

/// A tensor that has a row for each sample.
Result<HostTensor> rows_of_samples(const SafetensorsFile& file, const std::string& name,
                                   std::int64_t samples, const std::string& path) {
  TROUPE_ASSIGN(HostTensor tensor, file.tensor(name));
  if (tensor.shape.empty() || tensor.shape[0] != samples)
    return bad_input(path,
                     "tensor '" + name + "' of shape " + to_string(tensor.shape) + " beside " +
                         std::to_string(samples) + " inputs",
                     "the first dimensions must be equal");
  return tensor;
}

/// The fields that the config names besides inputs and targets.
Result<void> add_named_fields(const SafetensorsFile& file, const v1::TensorData& config,
                              std::int64_t samples, const DataOptions& options,
                              std::map<std::string, Field>& fields) {
  const std::string where = options.where + ".tensors.fields";
  for (const auto& [name, tensor] : config.fields()) {
    if (name.empty() || tensor.empty())
      return bad_input(where, "a field without a name", "write key and value");
    if (name == "inputs" || name == "targets")
      return bad_input(where, "\"" + name + "\" among the further fields",
                       "write `" + name + ": \"" + tensor + "\"` beside `fields`");
    Field& field = fields[name];
    TROUPE_ASSIGN(field.tensor, rows_of_samples(file, tensor, samples, config.path()));
    field.dtype = carried_type(field.tensor.dtype, options);
  }
  return {};
}

std::string or_default(const std::string& name, const char* otherwise) {
  return name.empty() ? otherwise : name;
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_tensors(const v1::Data& data, const DataOptions& options) {
  const v1::TensorData& config = data.tensors();
  TROUPE_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(config.path()));
  std::map<std::string, Field> fields;
  const std::string inputs_name = or_default(config.inputs(), "inputs");
  Field& inputs = fields["inputs"];
  TROUPE_ASSIGN(inputs.tensor, file.tensor(inputs_name));
  inputs.dtype = carried_type(inputs.tensor.dtype, options);
  if (inputs.tensor.shape.empty() || inputs.tensor.shape[0] == 0)
    return bad_input(config.path(),
                     "tensor '" + inputs_name + "' of shape " + to_string(inputs.tensor.shape) +
                         " holds no samples",
                     "its first dimension counts them");
  const std::int64_t samples = inputs.tensor.shape[0];
  if (options.need_targets) {
    const std::string name = or_default(config.targets(), "targets");
    Field& targets = fields["targets"];
    TROUPE_ASSIGN(targets.tensor, rows_of_samples(file, name, samples, config.path()));
    TROUPE_ASSIGN(targets.dtype,
                  target_type(targets.tensor, options, config.path() + ": tensor '" + name + "'"));
  }
  TROUPE_TRY(add_named_fields(file, config, samples, options, fields));
  SampleOrder order(static_cast<std::uint64_t>(samples), data.shuffle(), options.seed);
  return std::unique_ptr<DataSource>(
      std::make_unique<TensorSource>(std::move(fields), std::move(order)));
}

}  // namespace troupe::mp
