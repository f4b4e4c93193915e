// apps/examples/layer_library as a user builds and runs it: a project of its own that finds Troupe
// in its build tree or where it is installed, a job that names the library, and what PyTorch
// computes.
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using namespace mp::test;
using Json = nlohmann::json;

const fs::path example = TROUPE_SOURCE_DIR "/apps/examples/layer_library";

/// Runs a command to its end.
void run_command(const std::vector<std::string>& command) {
  constexpr std::chrono::minutes patience{8};
  Process process(command);
  std::string output;
  while (auto line = process.read_line(patience)) output += *line + "\n";
  BOOST_REQUIRE_MESSAGE(process.wait(patience).value_or(-1) == 0, output << process.error_output());
}

/// Builds the project in `source` against the Troupe in `prefix`.
void build_project(const fs::path& source, const fs::path& prefix, const fs::path& directory) {
  run_command({CMAKE_PROGRAM, "-S", source.string(), "-B", directory.string(), "-G",
               CMAKE_GENERATOR_NAME, "-DCMAKE_BUILD_TYPE=Release",
               "-DCMAKE_PREFIX_PATH=" + prefix.string()});
  run_command({CMAKE_PROGRAM, "--build", directory.string()});
}

/// The first block of code of this language in docs/layer_libraries.md.
std::string code_in_document(const std::string& language) {
  const std::string text = read_text(TROUPE_SOURCE_DIR "/docs/layer_libraries.md");
  const std::string fence = "```" + language + "\n";
  const auto begin = text.find(fence);
  BOOST_REQUIRE(begin != std::string::npos);
  const auto end = text.find("```", begin + fence.size());
  return text.substr(begin + fence.size(), end - begin - fence.size());
}

/// The example's library, and some that are none, in a directory of their own.
class Libraries {
 public:
  Libraries() {
    build_project(example, TROUPE_BINARY_DIR, path());
    // Another file with the same kinds.
    fs::copy_file(path() / "example_layers.so", path() / "same_kinds.so");
    fs::copy_file(WRONG_ABI_LAYERS, path() / "wrong_abi_layers.so");
    files_.write("no_library.so", "text");
  }

  fs::path path() const { return files_.path(); }

 private:
  TemporaryDirectory files_;
};

const Libraries& libraries() {
  static const Libraries libraries;
  return libraries;
}

Process run(const Cluster& cluster, const std::string& file, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_BINARY, "run", file, "--out", cluster.out()});
  return Process(std::move(arguments),
                 {{"TROUPE_PLUGIN_PATH", TEST_PLUGINS ":" + libraries().path().string()}});
}

/// What layer_library.py writes.
class Reference {
 public:
  Reference() {
    for (const auto& line : run_python("layer_library.py", {files_.path().string()}))
      numbers_.push_back(std::stod(line));
  }

  std::string file(const std::string& name) const {
    return (files_.path() / (name + ".safetensors")).string();
  }
  mp::SafetensorsFile open(const std::string& name) const {
    return must(mp::SafetensorsFile::open(file(name)));
  }
  double number(std::size_t i) const { return numbers_.at(i); }

 private:
  TemporaryDirectory files_;
  std::vector<double> numbers_;
};

const Reference& reference() {
  static const Reference reference;
  return reference;
}

/// The example's job on the reference's data.
std::vector<std::string> on_reference_data() {
  std::vector<std::string> arguments{"--json"};
  for (const std::string& each :
       {"data.tensors.path=" + reference().file("train"), std::string("data.shuffle=false"),
        "evaluation.data.tensors.path=" + reference().file("test"),
        std::string("evaluation.batch_size=2"), "init_from=" + reference().file("start"),
        std::string("precision=PRECISION_FLOAT64"), std::string("batch_size=6"),
        std::string("micro_batch_size=4"), std::string("steps=2"),
        std::string("loss.custom.ignore_index=3")})
    arguments.insert(arguments.end(), {"--set", "plugin." + each});
  return arguments;
}

void expect_tensors(const mp::SafetensorsFile& ours, const mp::SafetensorsFile& expected) {
  BOOST_TEST(ours.names() == expected.names(), boost::test_tools::per_element());
  for (const auto& name : expected.names())
    BOOST_TEST(relative_error(as_doubles(must(ours.tensor(name))),
                              as_doubles(must(expected.tensor(name)))) <= 1e-9,
               name);
}

/// The example's job with other libraries, in one line of error.
void expect_refused(const std::vector<std::string>& overrides,
                    const std::vector<std::string>& parts) {
  const Cluster cluster;
  std::vector<std::string> arguments;
  for (const auto& each : overrides) arguments.insert(arguments.end(), {"--set", "plugin." + each});
  const auto outcome = outcome_of(run(cluster, (example / "job.textproto").string(), arguments));
  BOOST_TEST(outcome.code == 2, outcome.error);
  BOOST_TEST(outcome.error.find('\n') == outcome.error.size() - 1, outcome.error);
  for (const auto& part : parts)
    BOOST_TEST(outcome.error.find(part) != std::string::npos, part << " in " << outcome.error);
  BOOST_TEST(!fs::exists(cluster.out()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_layer_and_a_loss_from_outside_train_as_in_pytorch) {
  const Cluster cluster;
  const Json result =
      result_of(run(cluster, (example / "job.textproto").string(), on_reference_data()));
  BOOST_TEST(relative_error({result.at("evaluation_loss")}, {reference().number(2)}) <= 1e-9);
  BOOST_TEST(result.at("accuracy") == reference().number(3));
  BOOST_TEST(result.at("evaluation_counted") == 4);
  std::istringstream metrics(read_text(cluster.out() + "/metrics.jsonl"));
  for (std::size_t step = 0; step < 2; ++step) {
    std::string text;
    std::getline(metrics, text);
    BOOST_TEST(relative_error({Json::parse(text).at("loss")}, {reference().number(step)}) <= 1e-9);
  }
  expect_tensors(must(mp::SafetensorsFile::open(cluster.out() + "/weights.safetensors")),
                 reference().open("end"));
}

BOOST_AUTO_TEST_CASE(a_prediction_needs_the_library_of_its_layers_alone) {
  const std::string training = read_text(example / "job.textproto");
  const auto model = training.find("    model {");
  const std::string stages = training.substr(model, training.find("    loss {") - model);
  const Cluster cluster;
  const auto job = cluster.files().write(
      "predict.textproto",
      "name: \"predict\" nodes { name: \"first\" } nodes { name: \"second\" }\n"
      "plugin { [type.googleapis.com/troupe.model_parallel.v1.PredictJob] {\n"
      "layer_libraries: \"example_layers\"\n" +
          stages + "data { tensors { path: \"" + reference().file("test") +
          "\" } } batch_size: 3 micro_batch_size: 2 precision: PRECISION_FLOAT64 init_from: \"" +
          reference().file("end") + "\" } }\n");
  const auto outcome = outcome_of(run(cluster, job, {}));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  expect_tensors(must(mp::SafetensorsFile::open(cluster.out() + "/outputs.safetensors")),
                 reference().open("outputs"));
}

BOOST_AUTO_TEST_CASE(libraries_that_cannot_be_used_are_refused_before_anything_is_written) {
  expect_refused({"layer_libraries[0]=missing"},
                 {"layer library \"missing\"", "no missing.so in: ", "TROUPE_PLUGIN_PATH"});
  expect_refused({"layer_libraries[0]=no_library"},
                 {"no_library.so", "the layer library cannot be loaded"});
  expect_refused({"layer_libraries[0]=troupe_netprobe"},
                 {"troupe_netprobe.so", "not a layer library", "TROUPE_LAYER_LIBRARY"});
  expect_refused({"layer_libraries[0]=wrong_abi_layers"},
                 {"wrong_abi_layers.so", "built for layer ABI 4711", "rebuild"});
  expect_refused({"layer_libraries[1]=same_kinds"},
                 {"kind \"swiglu\"", "\"example_layers\" and by the layer library \"same_kinds\""});
}

BOOST_AUTO_TEST_CASE(kinds_that_no_library_has_are_refused_with_those_there_are) {
  expect_refused({"model.layers.layers[2].kind=swigloo"},
                 {"layer 'gate'", "unknown kind 'swigloo'", "swiglu", "layer_libraries"});
  expect_refused({"loss.custom.kind=loss.vocal"}, {"unknown kind 'loss.vocal'", "loss.focal"});
}

BOOST_AUTO_TEST_CASE(a_library_is_a_name_and_a_loss_says_so_in_its_own) {
  expect_refused({"layer_libraries[0]=/tmp/example_layers"},
                 {"--set plugin.layer_libraries[0]", "not the name of a library"});
  expect_refused({"layer_libraries[0]=../example_layers"}, {"not the name of a library"});
  expect_refused({"layer_libraries[1]=example_layers"}, {"is there twice"});
  expect_refused({"loss.custom.kind=swiglu"}, {"not the kind of a loss", "loss."});
  expect_refused({"loss.custom.targets=TARGETS_NUMBERS", "loss.custom.ignore_index=3"},
                 {"no class indices to ignore"});
  expect_refused({"loss.custom.targets=TARGETS_NUMBERS"}, {"cannot use them"});
  expect_refused({"stages[0].device=fake"}, {"device \"fake\"", "has no use for layer libraries"});
}

BOOST_AUTO_TEST_CASE(a_library_as_documented_builds_and_runs_with_an_installed_troupe) {
  const TemporaryDirectory files;
  const fs::path prefix = files.path() / "prefix";
  run_command({CMAKE_PROGRAM, "--install", TROUPE_BINARY_DIR, "--prefix", prefix.string()});
  files.write("CMakeLists.txt", code_in_document("cmake"));
  files.write("my_layers.cpp", code_in_document("cpp"));
  build_project(files.path(), prefix, files.path() / "build");
  const fs::path plugins = prefix / "lib/troupe/plugins";
  fs::copy_file(files.path() / "build/my_layers.so", plugins / "my_layers.so");
  fs::copy_file(libraries().path() / "example_layers.so", plugins / "example_layers.so");
  std::vector<std::string> arguments = on_reference_data();
  arguments.insert(
      arguments.begin(),
      {(prefix / "bin/troupe").string(), "run", (example / "job.textproto").string(), "--out",
       (files.path() / "out").string(), "--set", "plugin.layer_libraries[1]=my_layers"});
  const auto outcome = outcome_of(Process(std::move(arguments)));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  expect_tensors(must(mp::SafetensorsFile::open(files.path() / "out/weights.safetensors")),
                 reference().open("end"));
}

}  // namespace troupe::test
