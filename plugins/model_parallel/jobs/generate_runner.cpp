#include "jobs/generate_runner.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "actors/driver.hpp"
#include "core/convert.hpp"
#include "core/token_choice.hpp"
#include "jobs/generate_plan.hpp"
#include "jobs/run_record.hpp"
#include "jobs/throughput.hpp"
#include "troupe/files.hpp"
#include "troupe/json.hpp"
#include "troupe/model_parallel/random.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {
namespace {

constexpr const char* default_output = "generated.txt";

/// Token ids as a batch of one sample.
HostTensor inputs_of(const std::vector<std::int64_t>& tokens, std::size_t context) {
  const std::size_t count = std::min(tokens.size(), context);
  HostTensor inputs;
  inputs.dtype = v1::DTYPE_INT64;
  inputs.shape = {1, static_cast<std::int64_t>(count)};
  inputs.data = Blob::uninitialized(count * sizeof(std::int64_t));
  std::copy(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end(),
            reinterpret_cast<std::int64_t*>(inputs.data.mutable_data()));
  return inputs;
}

/// The scores of the tokens that the tokenizer has; a model may have more.
Result<std::vector<double>> scores_in(const HostTensor& outputs, std::int64_t vocabulary) {
  if (outputs.shape.size() != 3 || outputs.shape[0] != 1 || outputs.shape[1] != 1)
    return bad_input(
        "model",
        "outputs of shape " + to_string(outputs.shape) + " instead of a score for each token",
        "generate with a language model");
  TROUPE_ASSIGN(const HostTensor doubles, convert(outputs, v1::DTYPE_FLOAT64));
  const auto* scores = doubles.as<double>();
  return std::vector<double>(scores, scores + std::min(vocabulary, outputs.shape[2]));
}

/// Text for a terminal: without the control characters that would steer it.
std::string printable(std::string text) {
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F) c = '?';
  return text;
}

/// One text from its prompt to its file.
class Generation {
 public:
  Generation(JobSession& session, const v1::GenerateJob& config, GeneratePlan generate)
      : session_(session), config_(config), generate_(std::move(generate)) {
    choice_.temperature = config.has_temperature() ? config.temperature() : 1;
    choice_.top_k = config.top_k();
  }

  Result<void> run() {
    DriverOptions options;
    options.allow_mixed_numerics = config_.allow_mixed_numerics();
    TROUPE_ASSIGN(driver_, Driver::start(session_, generate_.plan, std::move(options)));
    TROUPE_TRY(driver_->load_state(generate_.weights, true, config_.init_from()));
    generate_.weights.clear();
    const std::string output = config_.output().empty() ? default_output : config_.output();
    TROUPE_ASSIGN(const auto directory, session_.out_directory({{"run.json", output}, inputs()}));
    TROUPE_TRY(write_run_record(session_, directory, driver_->numerics()));
    TROUPE_ASSIGN(const auto tokens, add_tokens());
    TROUPE_ASSIGN(const std::string text, generate_.tokenizer->decode(tokens));
    TROUPE_TRY(write_whole_file(directory / output, text));
    report(text, directory / output);
    return {};
  }

 private:
  std::vector<std::filesystem::path> inputs() const {
    auto files = input_files(config_.init_from(), {});
    if (!config_.file().empty()) files.emplace_back(config_.file());
    return files;
  }

  Result<std::vector<std::int64_t>> add_tokens() {
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::int64_t> tokens = generate_.prompt;
    for (std::uint32_t i = 0; i < config_.tokens(); ++i) {
      TROUPE_ASSIGN(const HostTensor outputs,
                    driver_->pipeline().predict(inputs_of(tokens, generate_.context), 1));
      TROUPE_ASSIGN(const auto scores, scores_in(outputs, generate_.tokenizer->vocabulary()));
      // A token is a step of one sample.
      const std::uint64_t key = sample_key(session_.job().seed(), "generate", i, 0);
      TROUPE_ASSIGN(const std::int64_t token, choose_token(scores, choice_, uniform_at(key, 0)));
      tokens.push_back(token);
      session_.console().progress(static_cast<double>(i + 1) / config_.tokens(),
                                  fmt::format("token {}/{}", i + 1, config_.tokens()));
    }
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return tokens;
  }

  void report(const std::string& text, const std::filesystem::path& path) {
    auto& console = session_.console();
    console.line(printable(text));
    console.line(fmt::format("generated {} tokens in {} ({:.1f} tokens/s), text in {}",
                             config_.tokens(), format_duration(seconds_),
                             config_.tokens() / seconds_, path.string()));
    console.result(JsonObject()
                       .add("text", text)
                       .add("prompt_tokens", std::uint64_t{generate_.prompt.size()})
                       .add("tokens", std::uint64_t{config_.tokens()})
                       .add("seconds", seconds_)
                       .add("output", path.string())
                       .text());
  }

  JobSession& session_;
  const v1::GenerateJob& config_;
  GeneratePlan generate_;
  TokenChoice choice_;
  std::unique_ptr<Driver> driver_;
  double seconds_ = 0;
};

class GenerateRunner : public JobRunner {
 public:
  GenerateRunner(JobFile file, v1::GenerateJob config)
      : file_(std::move(file)), config_(std::move(config)) {}

  Result<std::string> check() override {
    TROUPE_ASSIGN(const GeneratePlan generate, make_generate_plan(file_, config_));
    return render_plan(generate.plan, 1);
  }

  Result<WorkerRequirements> requirements(const std::string& node) override {
    return worker_requirements(file_.job, config_.stages(), node);
  }

  Result<void> run(JobSession& session) override {
    TROUPE_ASSIGN(GeneratePlan generate, make_generate_plan(file_, config_));
    return Generation(session, config_, std::move(generate)).run();
  }

 private:
  JobFile file_;
  v1::GenerateJob config_;
};

}  // namespace

Result<std::unique_ptr<JobRunner>> make_generate_runner(
    const runtime::v1::Job& job, std::shared_ptr<const ConfigSource> source) {
  return make_runner<GenerateRunner, v1::GenerateJob>(job, std::move(source));
}

}  // namespace troupe::mp
