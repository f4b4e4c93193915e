// A plugin that works: one actor factory and one kind of job.
#include <stdexcept>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include "troupe/plugin.hpp"
#include "troupe/test/v1/test.pb.h"

namespace {

using troupe::test::v1::Part;
using troupe::test::v1::TestJob;

caf::behavior echo(caf::event_based_actor*) {
  return {[](int number) { return number; }};
}

/// Wants a Part as its config; the name "fail" makes it fail, "throw" throw.
troupe::Result<caf::actor> create_echo(troupe::ActorContext& context,
                                       const google::protobuf::Any& config) {
  Part part;
  if (!config.UnpackTo(&part)) return troupe::bad_input("test.echo", "the config is not a Part");
  if (part.name() == "fail") return troupe::bad_input("test.echo", "told to fail");
  if (part.name() == "throw") throw std::runtime_error("told to throw");
  return context.system.spawn(echo);
}

class TestRunner final : public troupe::JobRunner {
 public:
  TestRunner(TestJob job, std::shared_ptr<const troupe::ConfigSource> source)
      : job_(std::move(job)), source_(std::move(source)) {}

  /// Tells where the source says that `parts[1].weight` stands.
  troupe::Result<std::string> check() override {
    return source_->locate_plugin_field("parts[1].weight");
  }
  troupe::Result<troupe::WorkerRequirements> requirements(const std::string&) override {
    return troupe::WorkerRequirements{};
  }
  troupe::Result<void> run(troupe::JobSession&) override { return {}; }

 private:
  TestJob job_;
  std::shared_ptr<const troupe::ConfigSource> source_;
};

troupe::Result<std::unique_ptr<troupe::JobRunner>> create_runner(
    const troupe::runtime::v1::Job& job, std::shared_ptr<const troupe::ConfigSource> source) {
  TestJob config;
  if (!job.plugin().UnpackTo(&config)) return troupe::bad_input("plugin", "is not a TestJob");
  return std::unique_ptr<troupe::JobRunner>(
      std::make_unique<TestRunner>(std::move(config), std::move(source)));
}

bool register_plugin(troupe::Registry& registry, std::string* error) {
  auto added = registry.add_actor("test.echo", create_echo);
  if (added) added = registry.add_job(*TestJob::descriptor(), create_runner);
  if (!added) *error = added.error().to_string();
  return added.ok();
}

constexpr const char* packages[] = {"troupe.test.v1", nullptr};

const troupe::PluginDescriptor descriptor = {troupe::plugin_abi_version, "test_good", "1.0",
                                             packages, register_plugin};

}  // namespace

TROUPE_PLUGIN_ENTRY { return &descriptor; }
