#include "app/paths.hpp"

#include <cstdlib>

#include <boost/test/unit_test.hpp>

#include "support/process.hpp"

namespace troupe {

BOOST_AUTO_TEST_SUITE(paths)

BOOST_AUTO_TEST_CASE(plugins_lie_beside_the_binary_unless_someone_says_otherwise) {
  unsetenv("TROUPE_PLUGIN_PATH");
  using Paths = std::vector<std::filesystem::path>;
  BOOST_TEST((plugin_directories({}, "/opt/x/bin/troupe") == Paths{"/opt/x/lib/troupe/plugins"}));
  setenv("TROUPE_PLUGIN_PATH", "/a::/b", 1);
  BOOST_TEST((plugin_directories({}, "/opt/x/bin/troupe") == Paths{"/a", "/b"}));
  BOOST_TEST((plugin_directories({"/c"}, "/opt/x/bin/troupe") == Paths{"/c"}));
  unsetenv("TROUPE_PLUGIN_PATH");
}

BOOST_AUTO_TEST_CASE(a_directory_is_judged_without_being_made) {
  test::TemporaryDirectory files;
  const auto wanted = files.path() / "a" / "b";
  BOOST_TEST(check_creatable(wanted).ok());
  BOOST_TEST(check_creatable("relative").ok());
  BOOST_TEST(!std::filesystem::exists(files.path() / "a"));
  BOOST_TEST(make_directory(wanted).ok());
  BOOST_TEST(std::filesystem::is_directory(wanted));
}

BOOST_AUTO_TEST_CASE(a_file_in_the_way_is_an_error_that_names_it) {
  test::TemporaryDirectory files;
  const std::string file = files.write("file", "");
  for (const auto& path : {std::filesystem::path(file), std::filesystem::path(file) / "x"}) {
    auto checked = check_creatable(path);
    BOOST_REQUIRE(!checked.ok());
    BOOST_TEST(checked.error().to_string().find(file) != std::string::npos);
    BOOST_TEST(exit_code(checked.error().code) == 2);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
