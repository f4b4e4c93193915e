#include "jobs/generate_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/data_fit.hpp"
#include "data/read_file.hpp"

namespace troupe::mp {
namespace {

/// Appended to the model, so that the scores of one position travel and not those of all.
constexpr const char* last_position = "last_position";

Result<std::string> read_prompt(const v1::GenerateJob& config) {
  constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;
  if (config.prompt_case() == v1::GenerateJob::kFile) return read_file(config.file(), most_bytes);
  return config.text();
}

Result<std::vector<std::int64_t>> prompt_tokens(const JobFile& file, const v1::GenerateJob& config,
                                                const Tokenizer& tokenizer) {
  const std::string where =
      file.locate(config.prompt_case() == v1::GenerateJob::kFile ? "file" : "text");
  TROUPE_ASSIGN(const std::string text, read_prompt(config));
  TROUPE_ASSIGN(const auto tokens, tokenizer.encode(text, where));
  if (tokens.empty())
    return bad_input(where, "an empty prompt", "begin the text, if only with a line break");
  return std::vector<std::int64_t>(tokens.begin(), tokens.end());
}

/// Most positions of the model; 0: unknown.
std::uint32_t positions_of(const std::vector<v1::Layer>& layers) {
  for (const auto& layer : layers)
    if (layer.kind() == "position_embedding" && layer.parameters_size() == 1)
      return static_cast<std::uint32_t>(layer.parameters(0).shape(0));
  return 0;
}

Result<std::uint32_t> settle_context(const JobFile& file, const v1::GenerateJob& config,
                                     const std::vector<v1::Layer>& layers) {
  const std::uint32_t positions = positions_of(layers);
  const std::uint32_t context = config.context() != 0 ? config.context() : positions;
  if (context == 0)
    return bad_input(file.locate("context"), "this model does not say how many positions it reads",
                     "write context");
  if (positions != 0 && context > positions)
    return bad_input(file.locate("context"),
                     "a context of " + std::to_string(context) + " tokens, but the model has " +
                         std::to_string(positions) + " positions",
                     "make it smaller");
  return context;
}

}  // namespace

Result<GeneratePlan> make_generate_plan(const JobFile& file, const v1::GenerateJob& config) {
  TROUPE_TRY(check_output_name(file, config.output()));
  GeneratePlan generate;
  TROUPE_ASSIGN(PlanRequest request, plan_request(file, config));
  request.train = false;
  TROUPE_ASSIGN(generate.tokenizer, open_tokenizer(config.tokenizer(), file.locate("tokenizer")));
  TROUPE_ASSIGN(generate.prompt, prompt_tokens(file, config, *generate.tokenizer));
  TROUPE_ASSIGN(generate.context, settle_context(file, config, request.layers));
  v1::Layer last;
  last.set_name(last_position);
  last.set_kind(last_position);
  request.layers.push_back(std::move(last));
  TROUPE_ASSIGN(generate.plan, make_plan(request));
  const Locate locate = [&](const std::string& path) { return file.locate(path); };
  TROUPE_TRY(check_fields(generate.plan, {"inputs"}, locate));
  const auto highest = std::max_element(generate.prompt.begin(), generate.prompt.end());
  TROUPE_TRY(check_data_fits(generate.plan, {*highest + 1, {}}, "tokenizer", locate));
  TROUPE_ASSIGN(generate.weights, read_weights(generate.plan, config.init_from()));
  return generate;
}

}  // namespace troupe::mp
