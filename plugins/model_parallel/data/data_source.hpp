#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data_bounds.hpp"
#include "data/skipped_files.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/data.pb.h"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// One batch: named fields whose first dimension counts the samples ("inputs", "targets").
struct Batch {
  std::uint64_t first_sample = 0;  ///< position of its first sample in the epoch's order
  std::uint32_t samples = 0;
  TensorMap fields;
};

/// A data set, as a pure function of (seed, epoch, batch index): the same call gives the same
/// bytes, whatever was asked before. Not thread-safe; owned by the actor that builds its batches.
class DataSource {
 public:
  virtual ~DataSource();

  /// Samples in an epoch; 0 when endless.
  virtual std::uint64_t samples() const = 0;

  /// Names of the fields that every batch has.
  virtual std::vector<std::string> fields() const = 0;

  /// Batch `index` of `epoch`; the last one of an epoch may be smaller.
  virtual Result<Batch> batch(std::uint64_t epoch, std::uint64_t index,
                              std::uint32_t batch_size) = 0;

  /// How large the numbers of this data may be: whether a model has room for them can then be told
  /// before the first batch.
  virtual DataBounds bounds() const { return {}; }

  /// How often each class index is a target in an epoch; nothing where targets are no class indices
  /// or looking at all of them would take a pass over the data.
  virtual std::optional<std::vector<std::uint64_t>> target_counts() const { return std::nullopt; }

  /// What was left out because it could not be read; nothing for a data set that leaves nothing
  /// out. It grows while batches are built and may be read by another thread meanwhile.
  virtual std::shared_ptr<const SkippedFiles> skipped() const { return nullptr; }
};

struct DataOptions {
  std::uint64_t seed = 0;
  v1::DType dtype = v1::DTYPE_FLOAT32;  ///< of floating-point fields: the job's precision
  bool need_targets = true;
  v1::Loss loss;               ///< MSE wants floating targets, cross-entropy int64;
                               ///< unset: whatever the data has
  std::string where = "data";  ///< path of the config's field, for errors about it
};

/// Checks that the loss, if there is one, takes class indices as targets. `where` is the path of
/// the data set in the config.
Result<void> check_class_targets(const DataOptions& options, const std::string& where);

/// Fields of a data set that has inputs, and targets where they are needed.
std::vector<std::string> fields_of(const DataOptions& options);

/// Opens the files and checks headers and sizes. Safetensors, CIFAR and text files are mapped and
/// not read; IDX files are read up to the samples that are used, since the size of a compressed
/// file shows only then; of an image folder only the names are read. Errors name the file, or the
/// field of the config.
///
/// Fields: "inputs" [samples, ...], floating ones in `options.dtype`, integers as they are; with
/// `need_targets`, "targets", floating or int64; with `tensors`, those that its config names.
Result<std::unique_ptr<DataSource>> open_data(const v1::Data& data, const DataOptions& options);

}  // namespace troupe::mp
