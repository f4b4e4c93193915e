#include "app/signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

/// The first signal that a watcher hands on.
int first_of(const std::vector<int>& sent) {
  std::promise<int> received;
  bool is_first = true;
  SignalWatcher watcher([&](int signal) {
    if (std::exchange(is_first, false)) received.set_value(signal);
  });
  for (int signal : sent) kill(getpid(), signal);
  auto future = received.get_future();
  BOOST_REQUIRE(future.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  return future.get();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(signals)

BOOST_AUTO_TEST_CASE(blocked_signals_reach_the_watcher_and_are_given_back) {
  BOOST_REQUIRE(!is_blocked(SIGTERM));
  {
    const BlockedSignals blocked;
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) BOOST_TEST(is_blocked(signal));
    BOOST_TEST(first_of({SIGTERM}) == SIGTERM);
    const BlockedSignals again;
  }
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) BOOST_TEST(!is_blocked(signal));
  struct sigaction pipe {};
  sigaction(SIGPIPE, nullptr, &pipe);
  BOOST_TEST((pipe.sa_handler != SIG_IGN));
}

BOOST_AUTO_TEST_CASE(signals_ignored_at_the_start_stay_ignored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const BlockedSignals blocked;
    BOOST_TEST(!is_blocked(SIGHUP));
    // Were it read, it would come first: signals are delivered in the order of their numbers.
    BOOST_TEST(first_of({SIGHUP, SIGTERM}) == SIGTERM);
  }
  std::signal(SIGHUP, before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
