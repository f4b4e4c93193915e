#include "app/output_directory.hpp"

#include <set>

#include <boost/test/unit_test.hpp>

#include "support/process.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// A directory with files that hold their own names.
struct Directory {
  explicit Directory(const std::set<std::string>& names) {
    for (const auto& name : names) files.write(name, name);
  }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(files.path()))
      found.insert(entry.path().filename().string());
    return found;
  }
  std::string text(const std::string& name) const { return test::read_text(files.path() / name); }
  fs::path path() const { return files.path(); }

  test::TemporaryDirectory files;
};

void take(const fs::path& path, const OutputFiles& files) {
  OutputDirectory output(path);
  const auto taken = output.take(files);
  BOOST_REQUIRE_MESSAGE(taken.ok(), taken.error().to_string());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(output_directory)

BOOST_AUTO_TEST_CASE(previous_names_keep_their_extension) {
  BOOST_TEST(previous_name("d/weights.safetensors") == "d/weights.previous.safetensors");
  BOOST_TEST(previous_name("d/weights.safetensors", 2) == "d/weights.previous.2.safetensors");
  BOOST_TEST(previous_name("record") == "record.previous");
}

BOOST_AUTO_TEST_CASE(checking_changes_nothing) {
  Directory directory({"weights.safetensors"});
  BOOST_TEST(OutputDirectory(directory.path()).check().ok());
  BOOST_TEST((directory.names() == std::set<std::string>{"weights.safetensors"}));
  BOOST_TEST(OutputDirectory(directory.path() / "new" / "one").check().ok());
  BOOST_TEST(!fs::exists(directory.path() / "new"));
}

BOOST_AUTO_TEST_CASE(results_of_an_earlier_run_get_other_names) {
  Directory directory({"metrics.jsonl", "weights.safetensors", "notes.txt"});
  take(directory.path(), {{"metrics.jsonl", "weights.safetensors", "run.json"}, {}});
  BOOST_TEST(
      (directory.names() == std::set<std::string>{".lock", "metrics.previous.jsonl",
                                                  "weights.previous.safetensors", "notes.txt"}));
  BOOST_TEST(directory.text("weights.previous.safetensors") == "weights.safetensors");
}

BOOST_AUTO_TEST_CASE(results_of_another_kind_of_run_are_known_by_its_own_list) {
  Directory directory({});
  take(directory.path(), {{"answers.safetensors"}, {}});
  directory.files.write("answers.safetensors", "of the first run");
  take(directory.path(), {{"weights.safetensors"}, {}});
  BOOST_TEST(!fs::exists(directory.path() / "answers.safetensors"));
  BOOST_TEST(directory.text("answers.previous.safetensors") == "of the first run");
}

BOOST_AUTO_TEST_CASE(what_is_two_runs_old_is_replaced_but_never_an_input) {
  Directory directory({"w.bin", "w.previous.bin"});
  take(directory.path(), {{"w.bin"}, {}});
  BOOST_TEST(directory.text("w.previous.bin") == "w.bin");

  Directory chained({"w.bin", "w.previous.bin"});
  take(chained.path(), {{"w.bin"}, {chained.path() / "." / "w.previous.bin"}});
  BOOST_TEST(chained.text("w.previous.bin") == "w.previous.bin");
  BOOST_TEST(chained.text("w.previous.2.bin") == "w.bin");
}

BOOST_AUTO_TEST_CASE(half_written_results_are_removed_and_nothing_else) {
  Directory directory({"w.bin.tmp.123", "w.bin.tmp.x", "other.tmp.123"});
  take(directory.path(), {{"w.bin"}, {}});
  BOOST_TEST((directory.names() == std::set<std::string>{".lock", "w.bin.tmp.x", "other.tmp.123"}));
}

BOOST_AUTO_TEST_CASE(two_runs_do_not_share_a_directory) {
  Directory directory({"w.bin"});
  {
    OutputDirectory first(directory.path());
    BOOST_REQUIRE(first.take({{"w.bin"}, {}}).ok());
    directory.files.write("w.bin", "of the first run");
    OutputDirectory second(directory.path());
    for (const auto& refused : {second.check(), second.take({{"w.bin"}, {}})}) {
      BOOST_REQUIRE(!refused.ok());
      BOOST_TEST(exit_code(refused.error().code) == 2);
      BOOST_TEST(refused.error().what == "another run writes here");
      BOOST_TEST(!refused.error().hint.empty());
    }
    BOOST_TEST(directory.text("w.bin") == "of the first run");
  }
  BOOST_TEST(OutputDirectory(directory.path()).check().ok());
}

BOOST_AUTO_TEST_CASE(a_list_that_was_tampered_with_reaches_no_other_directory) {
  Directory directory({});
  fs::create_directory(directory.path() / "out");
  directory.files.write("victim", "v");
  directory.files.write("out/.lock", "../victim\n..\n.lock\n");
  take(directory.path() / "out", {{"w.bin"}, {}});
  BOOST_TEST(directory.text("victim") == "v");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
