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

BOOST_AUTO_TEST_CASE(stages_in_turn_on_host_and_device_compute_what_one_computes) {
  conformance::Chain host(fake, {});
  bool on_device = false;
  conformance::Chain alternating(
      [&] {
        on_device = !on_device;
        return on_device ? fake_device() : fake();
      },
      {{"", "b", "c", "d", "e", "loss"}});
  for (std::uint64_t step = 1; step <= 3; ++step) {
    host.train_step(step);
    alternating.train_step(step);
  }
  BOOST_TEST(conformance::same_bytes(host.state(), alternating.state()));
}

BOOST_AUTO_TEST_CASE(gradients_take_the_same_memory_whatever_the_number_of_micro_batches) {
  const auto bytes_after = [](std::uint32_t micro_batches) {
    const auto use = std::make_shared<FakeDeviceUse>();
    conformance::Chain chain([&] { return make_fake_device_executor(use); }, {});
    for (std::uint32_t i = 0; i < micro_batches; ++i) {
      const auto micro_batch = conformance::training(1, i, 3, 1.0 / micro_batches);
      chain.forward(micro_batch, conformance::test_inputs(i, 3), conformance::test_targets(i, 3));
      chain.backward(micro_batch);
    }
    return use->live_bytes;
  };
  BOOST_TEST(bytes_after(2) > 0u);
  BOOST_TEST(bytes_after(2) == bytes_after(16));
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
    for (std::uint64_t step = 2; step <= 1000; ++step) chain.train_step(step);
    BOOST_TEST(use->live_bytes == weights);
    BOOST_TEST(use->peak_bytes == peak);
    // 59 parameters, and a few micro-batches of values, in float64: far below this.
    BOOST_TEST(use->peak_bytes < 64u << 10);
  }
  BOOST_TEST(use->live_bytes == 0u);
}
