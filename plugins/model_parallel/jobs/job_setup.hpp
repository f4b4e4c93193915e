#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "actors/data_actor.hpp"
#include "core/plan.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/plugin.hpp"
#include "troupe/result.hpp"

/// What the jobs of this plugin have in common before they run.

namespace troupe::mp {

/// A job with the message of this plugin, and where its fields stand in the file.
struct JobFile {
  runtime::v1::Job job;
  std::shared_ptr<const ConfigSource> source;

  /// Position of a field of the plugin's message; the path itself without a file.
  std::string locate(const std::string& path) const;
};

/// The request with these fields and the job's nodes.
Result<PlanRequest> plan_request(const JobFile& file, const v1::Model& model,
                                 const google::protobuf::RepeatedPtrField<v1::Stage>& stages,
                                 v1::Precision precision);

/// The request with what all kinds of job say alike: model, stages, nodes, precision, wire types
/// and layer libraries.
template <class Config>
Result<PlanRequest> plan_request(const JobFile& file, const Config& config) {
  TROUPE_ASSIGN(PlanRequest request,
                plan_request(file, config.model(), config.stages(), config.precision()));
  request.rules.wire.assign(config.wire().begin(), config.wire().end());
  request.layer_libraries.assign(config.layer_libraries().begin(), config.layer_libraries().end());
  return request;
}

/// A runner of this kind for a job whose plugin's message is a Config.
template <class Runner, class Config>
Result<std::unique_ptr<JobRunner>> make_runner(const runtime::v1::Job& job,
                                               std::shared_ptr<const ConfigSource> source) {
  Config config;
  if (!job.plugin().UnpackTo(&config))
    return bad_input(job.name(), "the plugin message is no " + Config::descriptor()->name());
  return std::unique_ptr<JobRunner>(
      std::make_unique<Runner>(JobFile{job, std::move(source)}, std::move(config)));
}

/// Element type of a precision.
v1::DType dtype_of(v1::Precision precision);

/// Checks that a micro-batch is at most a batch.
Result<void> check_micro_batch_size(const JobFile& file, std::uint32_t batch_size,
                                    std::uint32_t micro_batch_size);

/// Checks that the field `output` is a plain file name, and not that of a file which every run
/// writes.
Result<void> check_output_name(const JobFile& file, const std::string& output);

/// Opens a data set as a feed; `batches` is how many the job takes, 0 for those of one epoch, which
/// an endless data set does not have.
struct FeedRequest {
  v1::Data data;
  std::string path;  ///< of the field `data`, for errors
  std::uint64_t seed = 0;
  v1::DType dtype = v1::DTYPE_FLOAT32;
  bool need_targets = true;
  v1::Loss loss;
  std::uint32_t batch_size = 1;
  std::uint32_t micro_batch_size = 1;
  std::uint64_t batches = 0;
};
Result<FeedConfig> open_feed(const JobFile& file, const FeedRequest& request);

/// Checks that the data has every field that the model reads, and the model room for its tokens and
/// classes. `path` is the field of the data.
Result<void> check_feed(const JobFile& file, const Plan& plan, const FeedConfig& feed,
                        const std::string& path);

/// Reads all tensors of a safetensors file, under the plan's names (see to_plan_names), and checks
/// that they are exactly those of the plan.
Result<TensorMap> read_weights(const Plan& plan, const std::filesystem::path& path);

/// The safetensors and text files among what a job reads, which may lie in its output directory.
std::vector<std::filesystem::path> input_files(const std::string& init_from,
                                               const std::vector<v1::Data>& data);

/// What the node's arithmetic libraries read when a process loads them. Threads: the most that a
/// stage there asks for; those that leave it open share this machine's cores with the job's other
/// local workers, while other machines are left to say how many they have (see thread_shares). For
/// CUDA stages, the workspace with which cuBLAS gives the same bits each time.
WorkerRequirements worker_requirements(const runtime::v1::Job& job,
                                       const google::protobuf::RepeatedPtrField<v1::Stage>& stages,
                                       const std::string& node);

}  // namespace troupe::mp
