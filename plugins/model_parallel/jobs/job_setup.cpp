#include "jobs/job_setup.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/data_fit.hpp"
#include "core/model_catalog.hpp"
#include "core/state_split.hpp"
#include "core/weight_names.hpp"
#include "data/safetensors.hpp"

namespace troupe::mp {
namespace {

constexpr std::uint64_t default_prefetch_bytes = std::uint64_t{64} << 20;

std::uint32_t cores_for_each_local_node(const runtime::v1::Job& job) {
  const auto local = std::count_if(job.nodes().begin(), job.nodes().end(),
                                   [](const auto& node) { return node.address().empty(); });
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  return std::max<std::uint32_t>(1, cores / static_cast<std::uint32_t>(std::max<long>(1, local)));
}

bool is_local(const runtime::v1::Job& job, const std::string& name) {
  return std::any_of(job.nodes().begin(), job.nodes().end(), [&](const auto& node) {
    return node.name() == name && node.address().empty();
  });
}

/// An error about a field of a data set stands at the data's position with a path behind it. It
/// gets the position of that field, and names it.
Error at_field(const JobFile& file, const FeedRequest& request, const std::string& data,
               Error error) {
  if (error.where.rfind(data + ".", 0) != 0) return error;
  const std::string field = error.where.substr(data.size() + 1);
  error.where = file.locate(request.path + "." + field);
  error.what = field + ": " + error.what;
  return error;
}

}  // namespace

std::string JobFile::locate(const std::string& path) const {
  return source ? source->locate_plugin_field(path) : path;
}

Result<PlanRequest> plan_request(const JobFile& file, const v1::Model& model,
                                 const google::protobuf::RepeatedPtrField<v1::Stage>& stages,
                                 v1::Precision precision) {
  PlanRequest request;
  request.job = file.job.name();
  request.generation = 1;
  request.seed = file.job.seed();
  auto layers = list_layers(model);
  if (!layers) {
    auto error = std::move(layers).error();
    error.where = file.locate(error.where);
    return error;
  }
  request.layers = std::move(layers).value();
  request.stages.assign(stages.begin(), stages.end());
  for (const auto& node : file.job.nodes()) request.nodes.push_back(node.name());
  request.precision = precision;
  request.locate = [file](const std::string& path) { return file.locate(path); };
  return request;
}

v1::DType dtype_of(v1::Precision precision) {
  return precision == v1::PRECISION_FLOAT64 ? v1::DTYPE_FLOAT64 : v1::DTYPE_FLOAT32;
}

Result<void> check_micro_batch_size(const JobFile& file, std::uint32_t batch_size,
                                    std::uint32_t micro_batch_size) {
  if (micro_batch_size <= batch_size) return {};
  return bad_input(file.locate("micro_batch_size"),
                   "micro_batch_size " + std::to_string(micro_batch_size) +
                       " is larger than batch_size " + std::to_string(batch_size),
                   "make it smaller, or the batch larger");
}

Result<void> check_output_name(const JobFile& file, const std::string& output) {
  const std::filesystem::path path = output;
  if (path.has_parent_path() || output == "." || output == "..")
    return bad_input(file.locate("output"), "output is a file name inside the output directory",
                     "choose the directory with --out");
  for (const auto* taken : {"run.json", "events.jsonl"})
    if (output == taken)
      return bad_input(file.locate("output"), output + " is the name of a file of every run",
                       "choose another name");
  return {};
}

Result<FeedConfig> open_feed(const JobFile& file, const FeedRequest& request) {
  DataOptions options;
  options.seed = request.seed;
  options.dtype = request.dtype;
  options.need_targets = request.need_targets;
  options.loss = request.loss;
  options.where = file.locate(request.path);
  auto opened = open_data(request.data, options);
  if (!opened) return at_field(file, request, options.where, std::move(opened).error());
  auto source = std::move(opened).value();
  FeedConfig feed;
  feed.plan.samples = source->samples();
  feed.plan.batch_size = request.batch_size;
  feed.plan.batches = request.batches;
  if (feed.plan.batches == 0) {
    if (feed.plan.samples == 0)
      return bad_input(file.locate(request.path), "the data has no end, so it has no epochs",
                       "set `samples` of the synthetic data, or train for a number of steps");
    feed.plan.batches = (feed.plan.samples + request.batch_size - 1) / request.batch_size;
  }
  feed.plan.prefetch_bytes =
      request.data.prefetch_bytes() != 0 ? request.data.prefetch_bytes() : default_prefetch_bytes;
  feed.micro_batch_size = request.micro_batch_size;
  feed.source = std::move(source);
  return feed;
}

Result<void> check_feed(const JobFile& file, const Plan& plan, const FeedConfig& feed,
                        const std::string& path) {
  const Locate locate = [&](const std::string& field) { return file.locate(field); };
  TROUPE_TRY(check_fields(plan, feed.source->fields(), locate));
  return check_data_fits(plan, feed.source->bounds(), path, locate);
}

Result<TensorMap> read_weights(const Plan& plan, const std::filesystem::path& path) {
  TROUPE_ASSIGN(const auto file, SafetensorsFile::open(path));
  TensorMap tensors;
  for (const auto& name : file.names()) {
    TROUPE_ASSIGN(tensors[name], file.tensor(name));
  }
  tensors = to_plan_names(plan, std::move(tensors));
  TROUPE_TRY(split_state(plan, tensors, true, path.string()));
  return tensors;
}

std::vector<std::filesystem::path> input_files(const std::string& init_from,
                                               const std::vector<v1::Data>& data) {
  std::vector<std::filesystem::path> files;
  if (!init_from.empty()) files.emplace_back(init_from);
  for (const auto& set : data) {
    if (set.has_tensors()) files.emplace_back(set.tensors().path());
    if (set.has_text())
      files.insert(files.end(), set.text().paths().begin(), set.text().paths().end());
  }
  return files;
}

WorkerRequirements worker_requirements(const runtime::v1::Job& job,
                                       const google::protobuf::RepeatedPtrField<v1::Stage>& stages,
                                       const std::string& node) {
  WorkerRequirements requirements;
  std::uint32_t threads = 0;
  bool open = false;
  for (const auto& stage : stages) {
    if (stage.node() != node) continue;
    threads = std::max(threads, stage.threads());
    open |= stage.threads() == 0;
    if (stage.device().compare(0, 4, "cuda") == 0)
      requirements.environment["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8";
  }
  if (open && !is_local(job, node)) return requirements;
  if (open) threads = std::max(threads, cores_for_each_local_node(job));
  if (threads == 0) return requirements;
  for (const auto* variable : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    requirements.environment[variable] = std::to_string(threads);
  return requirements;
}

}  // namespace troupe::mp
