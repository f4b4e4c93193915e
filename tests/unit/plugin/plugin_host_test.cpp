#include <filesystem>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include "plugin/host.hpp"

namespace fs = std::filesystem;
using troupe::ErrorCode;
using troupe::PluginHost;

namespace {

fs::path plugin_directory(const std::string& name) {
  return fs::path(TROUPE_BINARY_DIR) / "tests" / "plugins" / name;
}

PluginHost host_of(const std::vector<std::string>& names) {
  std::vector<fs::path> directories;
  for (const auto& name : names) directories.push_back(plugin_directory(name));
  return PluginHost(directories);
}

void check_error(const troupe::Result<void>& result, const std::string& part) {
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(static_cast<int>(result.error().code) == static_cast<int>(ErrorCode::bad_input));
  const auto text = result.error().to_string();
  BOOST_TEST(text.find(part) != std::string::npos, "\"" << part << "\" is not in: " << text);
}

/// A troupe.test.v1.Part with this name, without linking the plugin that owns the message.
google::protobuf::Any part(const std::string& name) {
  google::protobuf::Any any;
  any.set_type_url("type.googleapis.com/troupe.test.v1.Part");
  any.set_value(std::string("\x0a") + static_cast<char>(name.size()) + name);
  return any;
}

struct NoSource final : troupe::ConfigSource {
  std::string locate_plugin_field(const std::string& path) const override { return path; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_host)

BOOST_AUTO_TEST_CASE(a_plugin_is_loaded_by_name) {
  auto host = host_of({"good"});
  BOOST_TEST(host.job_types().empty());
  BOOST_REQUIRE(host.load("test_good").ok());
  BOOST_TEST(host.job_types() == std::vector<std::string>{"troupe.test.v1.TestJob"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(loading_twice_changes_nothing) {
  auto host = host_of({"good"});
  BOOST_REQUIRE(host.load("test_good").ok());
  BOOST_REQUIRE(host.load("test_good").ok());
  BOOST_TEST(host.job_types().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_type_url_names_the_plugin_that_owns_its_package) {
  auto host = host_of({"wrong_abi", "good"});
  BOOST_REQUIRE(host.load_for_type("type.googleapis.com/troupe.test.v1.TestJob").ok());
  const auto plugins = host.list();
  BOOST_REQUIRE(plugins.size() == 2u);
  BOOST_TEST(plugins[0].first == "test_wrong_abi");
  BOOST_TEST(!plugins[0].second);
  BOOST_TEST(plugins[1].first == "test_good");
  BOOST_TEST(plugins[1].second);
}

BOOST_AUTO_TEST_CASE(a_package_is_no_prefix_of_a_longer_name) {
  auto host = host_of({"good"});
  check_error(host.load_for_type("troupe.test.v10.TestJob"), "no plugin in");
}

BOOST_AUTO_TEST_CASE(a_missing_library_lists_the_directories_and_what_is_there) {
  auto host = host_of({"good", "wrong_abi"});
  const auto result = host.load("test_bad");
  check_error(result, "plugin test_bad: no test_bad.so with its manifest test_bad.plugin in: " +
                          plugin_directory("good").string());
  check_error(result, "plugins found: test_good, test_wrong_abi");
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_not_there_holds_no_plugins) {
  auto host = host_of({"nowhere"});
  BOOST_TEST(host.list().empty());
  check_error(host.load("test_good"), "plugins found: none");
}

BOOST_AUTO_TEST_CASE(a_library_outside_the_directories_is_not_loaded) {
  auto host = host_of({"wrong_abi"});
  check_error(host.load("../good/test_good"), "plugin ../good/test_good: no ");
}

BOOST_AUTO_TEST_CASE(a_library_without_manifest_is_no_plugin) {
  auto host = host_of({"no_manifest"});
  BOOST_TEST(host.list().empty());
  check_error(host.load("test_no_manifest"), "with its manifest");
}

BOOST_AUTO_TEST_CASE(another_abi_is_refused) {
  auto host = host_of({"wrong_abi"});
  const auto result = host.load("test_wrong_abi");
  check_error(result, "test_wrong_abi.so: built for plugin ABI " +
                          std::to_string(troupe::plugin_abi_version + 41) + ", this process has " +
                          std::to_string(troupe::plugin_abi_version));
  check_error(result, "rebuild the plugin");
}

BOOST_AUTO_TEST_CASE(a_library_without_entry_function_is_refused) {
  auto host = host_of({"no_entry"});
  check_error(host.load("test_no_entry"), "no entry function \"troupe_plugin\"");
}

BOOST_AUTO_TEST_CASE(a_plugin_under_another_name_is_refused) {
  auto host = host_of({"wrong_name"});
  check_error(host.load("test_wrong_name"),
              "the plugin calls itself \"somebody_else\", its file \"test_wrong_name\"");
}

BOOST_AUTO_TEST_CASE(a_manifest_that_names_a_foreign_package_is_refused) {
  auto host = host_of({"wrong_package"});
  check_error(host.load("test_wrong_package"),
              "the manifest names package \"troupe.test.elsewhere.v1\", which the plugin lacks");
}

BOOST_AUTO_TEST_CASE(a_plugin_that_refuses_says_why) {
  auto host = host_of({"refusing", "throwing"});
  check_error(host.load("test_refusing"), "the plugin did not register: no licence");
  check_error(host.load("test_throwing"), "the plugin did not register: out of luck");
  BOOST_TEST(!host.list()[0].second);
}

BOOST_AUTO_TEST_CASE(a_name_is_registered_once_and_a_plugin_as_a_whole_or_not_at_all) {
  auto host = host_of({"good", "duplicate"});
  BOOST_REQUIRE(host.load("test_good").ok());
  check_error(host.load("test_duplicate"), "actor factory \"test.echo\" is registered twice");
  caf::actor_system_config config;
  caf::actor_system system(config);
  troupe::ActorContext context{system, troupe::ExecutionPolicy::scheduled, {}, {}, {}, {}};
  const auto broken = host.create_actor("test.broken", context, part("a"));
  BOOST_REQUIRE(!broken.ok());
  BOOST_TEST(broken.error().to_string() ==
             "actor factory test.broken: no loaded plugin has this factory; "
             "factories: test.echo");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_library_is_refused) {
  const auto directory = plugin_directory("not_a_library");
  fs::create_directories(directory);
  for (const auto* name : {"text.so", "text.plugin"}) {
    FILE* file = std::fopen((directory / name).c_str(), "w");
    BOOST_REQUIRE(file);
    std::fputs("troupe.test.text.v1\n", file);
    std::fclose(file);
  }
  PluginHost host({directory});
  check_error(host.load("text"), "text.so: the library cannot be loaded");
}

BOOST_AUTO_TEST_CASE(a_factory_creates_actors_and_its_errors_come_back) {
  auto host = host_of({"good"});
  BOOST_REQUIRE(host.load("test_good").ok());
  caf::actor_system_config config;
  caf::actor_system system(config);
  troupe::ActorContext context{system, troupe::ExecutionPolicy::scheduled, {}, {}, {}, {}};

  auto created = host.create_actor("test.echo", context, part("a"));
  BOOST_REQUIRE(created.ok());
  BOOST_TEST(context.plugin_directory == plugin_directory("good").string());
  BOOST_TEST(context.plugin_directories == std::vector{plugin_directory("good").string()});
  int answer = 0;
  caf::scoped_actor self(system);
  self->request(*created, std::chrono::seconds(60), 7)
      .receive([&](int number) { answer = number; },
               [](const caf::error&) { BOOST_ERROR("no answer"); });
  BOOST_TEST(answer == 7);
  caf::anon_send_exit(*created, caf::exit_reason::user_shutdown);

  const auto refused = host.create_actor("test.echo", context, part("fail"));
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().to_string() == "test.echo: told to fail");
  const auto thrown = host.create_actor("test.echo", context, part("throw"));
  BOOST_REQUIRE(!thrown.ok());
  BOOST_TEST(thrown.error().to_string() == "actor factory test.echo: told to throw");
}

BOOST_AUTO_TEST_CASE(a_job_runner_is_made_for_the_type_of_the_job) {
  auto host = host_of({"good"});
  troupe::runtime::v1::Job job;
  job.mutable_plugin()->set_type_url("type.googleapis.com/troupe.test.v1.TestJob");
  auto runner = host.create_job_runner(job, std::make_shared<NoSource>());
  BOOST_REQUIRE(runner.ok());
  const auto checked = (*runner)->check();
  BOOST_REQUIRE(checked.ok());
  BOOST_TEST(*checked == "parts[1].weight");
}

BOOST_AUTO_TEST_CASE(a_message_that_is_no_job_has_no_runner) {
  auto host = host_of({"good"});
  troupe::runtime::v1::Job job;
  *job.mutable_plugin() = part("a");
  const auto runner = host.create_job_runner(job, std::make_shared<NoSource>());
  BOOST_REQUIRE(!runner.ok());
  BOOST_TEST(runner.error().to_string() ==
             "plugin: \"troupe.test.v1.Part\" is not a kind of job; "
             "kinds of job: troupe.test.v1.TestJob");
}

BOOST_AUTO_TEST_SUITE_END()
