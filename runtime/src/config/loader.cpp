// Loading goes: parse (plugins load while their type URLs are met), apply --set, validate the
// options of the fields, then the rules that span fields. The first error ends it.
#include "config/loader.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/override.hpp"
#include "config/plugin_message.hpp"
#include "config/rules.hpp"
#include "config/source.hpp"
#include "config/text.hpp"
#include "troupe/validate.hpp"

namespace troupe {
namespace {

using google::protobuf::Message;

/// Reads and parses the file and applies the overrides. `plugins` is null for a file without
/// plugin messages.
Result<std::shared_ptr<TextConfigSource>> load(const std::filesystem::path& file,
                                               const std::vector<std::string>& sets,
                                               PluginHost* plugins, Message& message) {
  TROUPE_ASSIGN(auto text, read_config_file(file));
  auto source = std::make_shared<TextConfigSource>(file.string(), TextPositions(std::move(text)),
                                                   *message.GetDescriptor());
  TextParse options;
  options.name = file.string();
  options.tree = &source->tree();
  std::optional<PluginTypeFinder> finder;
  if (plugins) options.finder = &finder.emplace(*plugins);
  TROUPE_TRY(parse_text(source->text(), options, message));
  for (const auto& set : sets) {
    TROUPE_ASSIGN(auto change, parse_override(set));
    TROUPE_TRY(apply_override(change, plugins, message));
    source->add_set(std::move(change.path));
  }
  return source;
}

/// The plugin's message of a job; refuses messages that are no job.
Result<std::unique_ptr<Message>> unpack_job(const runtime::v1::Job& job, PluginHost& plugins,
                                            const TextConfigSource& source) {
  auto message = unpack_plugin_message(job.plugin(), plugins);
  if (!message) {
    auto error = std::move(message).error();
    if (error.where.empty()) error.where = source.locate("plugin");
    return error;
  }
  const auto& name = (*message)->GetDescriptor()->full_name();
  const auto types = plugins.job_types();
  if (std::find(types.begin(), types.end(), name) == types.end())
    return bad_input(source.locate("plugin"), fmt::format("\"{}\" is not a kind of job", name),
                     fmt::format("kinds of job: {}", fmt::join(types, ", ")));
  return message;
}

}  // namespace

Result<LoadedJob> load_job(const std::filesystem::path& file, const std::vector<std::string>& sets,
                           PluginHost& plugins) {
  LoadedJob loaded;
  TROUPE_ASSIGN(auto source, load(file, sets, &plugins, loaded.job));
  const auto locate = [&source = *source](const std::string& path) { return source.locate(path); };
  TROUPE_TRY(validate(loaded.job, locate));
  TROUPE_ASSIGN(const auto message, unpack_job(loaded.job, plugins, *source));
  source->set_plugin_type(*message->GetDescriptor());
  TROUPE_TRY(validate_at("plugin.", *message, locate));
  TROUPE_TRY(check_rules(loaded.job, locate));
  loaded.source = std::move(source);
  return loaded;
}

Result<runtime::v1::Node> load_node(const std::filesystem::path& file,
                                    const std::vector<std::string>& sets) {
  runtime::v1::Node node;
  TROUPE_ASSIGN(const auto source, load(file, sets, nullptr, node));
  const auto locate = [&source = *source](const std::string& path) { return source.locate(path); };
  TROUPE_TRY(validate(node, locate));
  TROUPE_TRY(check_rules(node, locate));
  return node;
}

}  // namespace troupe
