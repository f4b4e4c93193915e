#include "app/launcher_watch.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>

#include "app/application.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

struct TwoLaunchers {
  TwoLaunchers() {
    watch.add(one, "a");
    watch.add(two, "b");
    watch.add(one, "c");
  }

  caf::actor launcher() {
    return application.system().spawn([]() -> caf::behavior { return {[](int) {}}; });
  }

  Application application;
  caf::actor one = launcher();
  caf::actor two = launcher();
  LauncherWatch watch{500ms, 3s};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(launcher_watch)

BOOST_AUTO_TEST_CASE(one_that_answers_lives_and_one_that_does_not_is_silent) {
  TwoLaunchers launchers;
  for (int tick = 1; tick < 6; ++tick) {
    BOOST_TEST(launchers.watch.on_tick(500ms).empty());
    launchers.watch.on_answer(launchers.one);
  }
  const auto silent = launchers.watch.on_tick(500ms);
  BOOST_REQUIRE(silent.size() == 1u);
  BOOST_TEST((silent.front() == launchers.two));
}

BOOST_AUTO_TEST_CASE(a_lost_launcher_is_named_once_with_all_its_nodes) {
  TwoLaunchers launchers;
  BOOST_TEST(launchers.watch.launchers().size() == 2u);
  BOOST_TEST(
      (launchers.watch.remove(launchers.one.address()) == std::vector<std::string>{"a", "c"}));
  BOOST_TEST(launchers.watch.remove(launchers.one.address()).empty());
  BOOST_TEST(launchers.watch.launchers().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
