#include "core/stage_machine.hpp"

#include <algorithm>
#include <random>

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::mp;

namespace {

constexpr auto train = v1::Key::KIND_TRAIN;
constexpr auto eval = v1::Key::KIND_EVAL;

StageMachine::Shape shape_of(v1::Schedule schedule, std::uint32_t stage, std::uint32_t stages,
                             std::size_t inbound = 1, std::size_t outbound = 1) {
  StageMachine::Shape shape;
  shape.schedule = schedule;
  shape.stage = stage;
  shape.stage_count = stages;
  shape.inbound = inbound;
  shape.outbound = outbound;
  return shape;
}

/// "F1" "B0" "C" (collect) "S" "U" "P" (publish) "I" (install) "W" (state), "-" for nothing.
std::string next(StageMachine& machine) {
  const auto action = machine.next();
  if (!action) return "-";
  const auto index = std::to_string(action->micro_batch.index);
  switch (action->operation) {
    case StageOperation::forward: return "F" + index;
    case StageOperation::backward: return "B" + index;
    case StageOperation::collect: return "C";
    case StageOperation::summarise: return "S";
    case StageOperation::update: return "U";
    case StageOperation::publish: return "P";
    case StageOperation::install: return "I";
    case StageOperation::state: return "W";
  }
  return "?";
}

void check_error(const Result<void>& result, const std::string& text) {
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().to_string().find(text) != std::string::npos,
             result.error().to_string() << " does not contain: " << text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_of_one_micro_batch_runs_to_its_commit) {
  StageMachine machine(shape_of(v1::SCHEDULE_ONE_F_ONE_B, 0, 2));
  BOOST_TEST(next(machine) == "-");
  BOOST_REQUIRE(machine.value_arrived({train, 1, 0}, 0, 1, 0).ok());
  BOOST_TEST(next(machine) == "F0");
  BOOST_TEST(next(machine) == "-");  // one operation at a time
  machine.operation_done({true});
  BOOST_TEST(next(machine) == "-");  // its gradient is missing
  BOOST_REQUIRE(machine.gradient_arrived({train, 1, 0}, 0).ok());
  BOOST_TEST(next(machine) == "B0");
  machine.operation_done();
  BOOST_TEST(next(machine) == "S");
  machine.operation_done();
  BOOST_TEST(next(machine) == "-");
  BOOST_REQUIRE(machine.decision_arrived(1, false).ok());
  BOOST_TEST(next(machine) == "U");
  machine.operation_done();
  BOOST_TEST(next(machine) == "-");
  check_error(machine.value_arrived({train, 1, 0}, 0, 1, 0), "step that is finished");
}

BOOST_AUTO_TEST_CASE(values_of_the_next_step_wait_for_the_commit) {
  StageMachine machine(shape_of(v1::SCHEDULE_ONE_F_ONE_B, 1, 2, 1, 0));
  BOOST_REQUIRE(machine.value_arrived({train, 1, 0}, 0, 1, 0).ok());
  BOOST_REQUIRE(machine.value_arrived({train, 2, 0}, 0, 1, 1).ok());
  BOOST_TEST(next(machine) == "F0");
  machine.operation_done({});
  BOOST_TEST(next(machine) == "B0");  // nobody sends it a gradient
  machine.operation_done();
  BOOST_TEST(next(machine) == "S");
  machine.operation_done();
  BOOST_TEST(next(machine) == "-");
  BOOST_REQUIRE(machine.decision_arrived(1, true).ok());  // accumulate: no update
  const auto action = machine.next();
  BOOST_REQUIRE(action.has_value());
  BOOST_TEST((action->micro_batch == MicroBatchKey{train, 2, 0}));
}

BOOST_AUTO_TEST_CASE(an_evaluation_runs_between_the_steps_it_was_admitted_between) {
  StageMachine machine(shape_of(v1::SCHEDULE_ONE_F_ONE_B, 1, 2, 1, 0));
  BOOST_REQUIRE(machine.value_arrived({train, 1, 0}, 0, 1, 0).ok());
  BOOST_TEST(next(machine) == "F0");
  BOOST_REQUIRE(machine.value_arrived({train, 2, 0}, 0, 1, 3).ok());
  BOOST_REQUIRE(machine.value_arrived({eval, 1, 1}, 0, 2, 2).ok());
  BOOST_REQUIRE(machine.value_arrived({eval, 1, 0}, 0, 2, 1).ok());
  machine.state_requested();
  machine.operation_done({});
  BOOST_TEST(next(machine) == "B0");
  machine.operation_done();
  BOOST_TEST(next(machine) == "S");
  machine.operation_done();
  BOOST_REQUIRE(machine.decision_arrived(1, false).ok());
  BOOST_TEST(next(machine) == "U");
  machine.operation_done();
  BOOST_TEST(next(machine) == "W");
  machine.operation_done();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto action = machine.next();
    BOOST_REQUIRE(action.has_value());
    BOOST_TEST((action->micro_batch == MicroBatchKey{eval, 1, i}));
    machine.operation_done({true});  // no gradients are awaited in an evaluation
  }
  const auto action = machine.next();
  BOOST_REQUIRE(action.has_value());
  BOOST_TEST((action->micro_batch == MicroBatchKey{train, 2, 0}));
}

BOOST_AUTO_TEST_CASE(messages_out_of_protocol_are_errors_naming_the_key) {
  StageMachine machine(shape_of(v1::SCHEDULE_ONE_F_ONE_B, 0, 2, 2, 2));
  BOOST_REQUIRE(machine.value_arrived({train, 3, 1}, 0, 2, 5).ok());
  check_error(machine.value_arrived({train, 3, 1}, 0, 2, 5),
              "train step 3, micro-batch 1: the same");
  check_error(machine.value_arrived({train, 3, 1}, 2, 2, 5), "does not read");
  check_error(machine.value_arrived({train, 3, 2}, 0, 2, 5), "outside its step of 2");
  check_error(machine.value_arrived({train, 3, 0}, 0, 3, 5), "2 micro-batches by one message");
  check_error(machine.value_arrived({v1::Key::KIND_UNSPECIFIED, 3, 0}, 0, 2, 5), "kind");
  check_error(machine.gradient_arrived({train, 3, 0}, 0), "between its forward");
  check_error(machine.decision_arrived(3, false), "does not await");

  for (std::size_t inbound : {0, 1})
    BOOST_REQUIRE(machine.value_arrived({train, 3, 0}, inbound, 2, 4).ok());
  BOOST_TEST(next(machine) == "F0");
  machine.operation_done({false, true});
  check_error(machine.gradient_arrived({train, 3, 0}, 0), "needs none");
  check_error(machine.gradient_arrived({train, 3, 0}, 2), "does not send");
  BOOST_REQUIRE(machine.gradient_arrived({train, 3, 0}, 1).ok());
  check_error(machine.gradient_arrived({train, 3, 0}, 1), "twice");
  check_error(machine.value_arrived({train, 3, 0}, 1, 2, 4), "the same value twice");

  StageMachine forward_only([] {
    auto shape = shape_of(v1::SCHEDULE_GPIPE, 0, 1);
    shape.train = false;
    return shape;
  }());
  check_error(forward_only.value_arrived({train, 1, 0}, 0, 1, 0), "forward only");
}

// Several steps of a stage whose messages arrive in any order that the protocol allows: whatever
// happens, every operation runs once, in order, and no more than the window is alive.
BOOST_AUTO_TEST_CASE(any_order_of_arrival_gives_the_same_operations) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };

  for (int round = 0; round < 500; ++round) {
    const auto schedule = below(2) == 0 ? v1::SCHEDULE_GPIPE : v1::SCHEDULE_ONE_F_ONE_B;
    const auto stages = 1 + below(5);
    const auto stage = below(stages);
    const auto inbound = 1 + below(3);
    const std::uint32_t outbound = stage + 1 == stages ? 0 : 1 + below(2);
    StageMachine machine(shape_of(schedule, stage, stages, inbound, outbound));

    // Each inbound value is one ordered flow; flows overtake each other.
    struct Message {
      MicroBatchKey key;
      std::uint32_t micro_batches;
      std::uint64_t unit;
    };
    std::vector<std::vector<Message>> flows(inbound);
    std::vector<std::uint32_t> sizes;
    std::uint64_t unit = 0;
    constexpr std::uint64_t steps = 3;
    for (std::uint64_t step = 1; step <= steps; ++step) {
      sizes.push_back(1 + below(7));
      for (std::uint32_t i = 0; i < sizes.back(); ++i, ++unit)
        for (auto& flow : flows) flow.push_back({{train, step, i}, sizes.back(), unit});
    }
    for (auto& flow : flows) std::reverse(flow.begin(), flow.end());  // taken from the back

    std::vector<std::pair<MicroBatchKey, std::uint32_t>> gradients;  // that may be sent
    std::optional<StageAction> running;
    std::uint64_t committed = 0;
    std::uint32_t forwards = 0;
    std::uint32_t backwards = 0;
    int idle = 0;
    while (committed < steps && idle < 10000) {
      ++idle;
      const auto size = sizes[committed];
      const auto step = committed + 1;
      switch (below(4)) {
        case 0: {
          auto& flow = flows[below(inbound)];
          if (flow.empty()) break;
          const auto index = static_cast<std::size_t>(&flow - flows.data());
          const auto message = flow.back();
          flow.pop_back();
          BOOST_REQUIRE(
              machine.value_arrived(message.key, index, message.micro_batches, message.unit).ok());
          break;
        }
        case 1: {
          if (gradients.empty()) break;
          const auto which = below(static_cast<std::uint32_t>(gradients.size()));
          const auto [key, value] = gradients[which];
          gradients.erase(gradients.begin() + which);
          BOOST_REQUIRE(machine.gradient_arrived(key, value).ok());
          break;
        }
        case 2:
          if (!running) running = machine.next();
          break;
        case 3: {
          if (!running) break;
          const auto action = *running;
          running.reset();
          machine.operation_done(std::vector<bool>(outbound, true));
          BOOST_REQUIRE(action.micro_batch.step == step);
          switch (action.operation) {
            case StageOperation::forward:
              BOOST_REQUIRE(action.micro_batch.index == forwards++);
              for (std::uint32_t value = 0; value < outbound; ++value)
                gradients.emplace_back(action.micro_batch, value);
              break;
            case StageOperation::backward:
              BOOST_REQUIRE(action.micro_batch.index == backwards++);
              if (schedule == v1::SCHEDULE_GPIPE) BOOST_REQUIRE(forwards == size);
              break;
            case StageOperation::summarise:
              BOOST_REQUIRE(backwards == size);
              BOOST_REQUIRE(machine.decision_arrived(step, false).ok());
              break;
            case StageOperation::update:
              BOOST_REQUIRE(forwards == size);
              ++committed;
              forwards = backwards = 0;
              break;
            case StageOperation::collect:
            case StageOperation::publish:
            case StageOperation::install: BOOST_FAIL("nothing is tied"); break;
            case StageOperation::state: BOOST_FAIL("no state was requested"); break;
          }
          const auto limit = schedule == v1::SCHEDULE_GPIPE ? size : std::min(size, stages - stage);
          BOOST_REQUIRE(forwards - backwards <= limit);
          break;
        }
      }
    }
    BOOST_REQUIRE(committed == steps);
    BOOST_REQUIRE(!machine.next().has_value());
  }
}
