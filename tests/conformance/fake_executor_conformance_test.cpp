#include <memory>

#include <boost/test/unit_test.hpp>

#include "conformance/executor_chain.hpp"
#include "conformance/executor_suite.hpp"
#include "fake/fake_executor.hpp"

using namespace troupe::mp;

namespace {

std::unique_ptr<StageExecutor> fake() { return make_fake_executor(); }

std::unique_ptr<StageExecutor> fake_device() {
  return make_fake_device_executor(std::make_shared<FakeDeviceUse>());
}

}  // namespace

TROUPE_EXECUTOR_CONFORMANCE(fake_executor, fake)
TROUPE_EXECUTOR_CONFORMANCE(fake_device_executor, fake_device)

BOOST_AUTO_TEST_CASE(the_device_computes_what_the_host_computes) {
  conformance::Chain host(fake, {});
  conformance::Chain device(fake_device, {{"", "c"}});
  host.train_step(1);
  device.train_step(1);
  BOOST_TEST(conformance::same_bytes(host.state(), device.state()));
}

BOOST_AUTO_TEST_CASE(device_memory_is_flat_over_steps_and_empty_at_the_end) {
  const auto use = std::make_shared<FakeDeviceUse>();
  {
    conformance::Chain chain([&] { return make_fake_device_executor(use); }, {});
    const auto weights = use->live_bytes;
    BOOST_TEST(weights > 0u);
    chain.train_step(1);
    BOOST_TEST(use->live_bytes == weights);
    const auto peak = use->peak_bytes;
    for (std::uint64_t step = 2; step <= 50; ++step) chain.train_step(step);
    BOOST_TEST(use->live_bytes == weights);
    BOOST_TEST(use->peak_bytes == peak);
  }
  BOOST_TEST(use->live_bytes == 0u);
}
