#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/protocol.hpp"
#include "actors/stage_actor.hpp"
#include "core/plan.hpp"
#include "fake/fake_arithmetic.hpp"
#include "support/simulation.hpp"

using namespace troupe;
using namespace troupe::mp;
using namespace std::chrono_literals;

namespace {

/// Counts the receipts that have been returned.
class CountingSink : public Receipt::Sink {
 public:
  void release(std::uint64_t bytes, AdmissionUnit) override { released += bytes; }
  std::uint64_t released = 0;
};

using Inbox = std::vector<Delivery>;

caf::behavior record(caf::event_based_actor*, std::shared_ptr<Inbox> inbox) {
  return {[inbox](const Delivery& delivery) { inbox->push_back(delivery); }};
}

struct Options {
  v1::Schedule schedule = v1::SCHEDULE_ONE_F_ONE_B;
  std::map<std::string, double> attributes;  // of the middle stage's layer
  double slow_down_seconds = 0;
};

/// The middle stage of three, alone: everybody around it only records what it sends. Its layer
/// "l1" reads two outputs of "l0", a floating and an integer one.
class MiddleStage {
 public:
  explicit MiddleStage(const Options& options = {}) : cluster_({"a", "driver"}) {
    for (const auto& [node, name] :
         {std::pair("a", "stage.0"), std::pair("a", "stage.2"), std::pair("driver", "pipeline"),
          std::pair("driver", "optimizer")}) {
      inboxes_[name] = std::make_shared<Inbox>();
      cluster_.bind(node, name, cluster_.system().spawn(record, inboxes_[name]));
    }
    ActorContext context{
        cluster_.system(), cluster_.policy(), cluster_.mailer("a"), {"a", "stage.1"}, "", {}};
    google::protobuf::Any config;
    config.PackFrom(plan(options).stages[1].config);
    stage_ = std::move(spawn_stage(context, config)).value();
    cluster_.bind("a", "stage.1", stage_);
    cluster_.run_until_idle();
  }

  static Plan plan(const Options& options) {
    PlanRequest request;
    request.job = "job";
    request.generation = 5;
    request.nodes = {"a"};
    for (int i = 0; i < 3; ++i) {
      v1::Layer layer;
      layer.set_name("l" + std::to_string(i));
      layer.set_kind("fake");
      auto* weight = layer.add_parameters();
      weight->set_name(layer.name() + ".weight");
      weight->add_shape(4);
      weight->mutable_init()->set_normal_std(1);
      if (i == 0) layer.set_outputs(2);
      if (i == 1)
        for (const auto& [name, value] : options.attributes)
          (*layer.mutable_attributes())[name] = value;
      request.layers.push_back(layer);
      v1::Stage stage;
      stage.set_node("a");
      stage.set_device("fake");
      stage.set_slow_down_seconds(options.slow_down_seconds);
      if (i != 0) stage.set_first_layer(layer.name());
      request.stages.push_back(stage);
    }
    request.loss.emplace().mutable_mse();
    request.schedule = options.schedule;
    request.optimizer.emplace().mutable_sgd()->set_lr(0.1);
    return std::move(make_plan(request)).value();
  }

  v1::Message message(v1::Key::Kind kind, std::uint64_t step, std::uint32_t index) const {
    v1::Message result;
    result.mutable_key()->set_job("job");
    result.mutable_key()->set_generation(5);
    result.mutable_key()->set_kind(kind);
    result.mutable_key()->set_step(step);
    result.mutable_key()->set_micro_batch(index);
    return result;
  }

  void deliver(const ActorAddress& from, const std::string& header, Blob payload = {},
               AdmissionUnit unit = 0) {
    auto receipt = std::make_shared<Receipt>(sink_, payload.size(), unit);
    caf::anon_send(stage_, Delivery{from, TrafficClass::control, unit, header, std::move(payload),
                                    std::move(receipt)});
    cluster_.run_until_idle();
  }

  /// Output `slot` of "l0" arrives, 3 samples: 24 bytes of float32 or 48 of int64.
  void value(v1::Key::Kind kind, std::uint64_t step, std::uint32_t index, std::uint32_t slot,
             std::uint32_t micro_batches, v1::DType floating = v1::DTYPE_FLOAT32,
             v1::Precision precision = v1::PRECISION_FLOAT32) {
    auto header = message(kind, step, index);
    header.mutable_key()->mutable_value()->set_layer("l0");
    header.mutable_key()->mutable_value()->set_slot(slot);
    Value value;
    value.tensor =
        tensor_from_digest(step * 10 + index, slot == 0 ? floating : v1::DTYPE_INT64, {3, 2});
    value.requires_grad = slot == 0 && kind == v1::Key::KIND_TRAIN;
    auto* forward = header.mutable_forward();
    *forward->mutable_tensor() = make_header(value);
    forward->set_micro_batches(micro_batches);
    forward->set_weight(1.0 / micro_batches);
    forward->set_samples(3);
    forward->set_precision(precision);
    deliver({"a", "stage.0"}, header.SerializeAsString(), value.tensor.data, step * 10 + index);
  }

  void values(v1::Key::Kind kind, std::uint64_t step, std::uint32_t index,
              std::uint32_t micro_batches) {
    for (const std::uint32_t slot : {0, 1}) value(kind, step, index, slot, micro_batches);
  }

  void gradient(std::uint64_t step, std::uint32_t index, const std::string& from = "stage.2",
                v1::DType dtype = v1::DTYPE_FLOAT32) {
    auto header = message(v1::Key::KIND_TRAIN, step, index);
    header.mutable_key()->mutable_value()->set_layer("l1");
    Value value;
    value.tensor = tensor_from_digest(99, dtype, {3, 2});
    *header.mutable_gradient()->mutable_tensor() = make_header(value);
    deliver({"a", from}, header.SerializeAsString(), value.tensor.data);
  }

  /// What `name` has got since the last call, parsed.
  std::vector<v1::Message> take(const std::string& name) {
    std::vector<v1::Message> messages;
    for (const auto& delivery : *inboxes_.at(name))
      messages.push_back(std::move(parse_message(delivery)).value());
    inboxes_.at(name)->clear();
    return messages;
  }

  /// The only thing the pipeline has got is a failure.
  v1::Failed failure() {
    const auto messages = take("pipeline");
    BOOST_REQUIRE(messages.size() == 1u);
    BOOST_REQUIRE(messages[0].has_failed());
    return messages[0].failed();
  }

  std::uint64_t released() const { return sink_->released; }
  troupe::testing::SimulatedCluster& cluster() { return cluster_; }
  const Inbox& inbox(const std::string& name) const { return *inboxes_.at(name); }

 private:
  troupe::testing::SimulatedCluster cluster_;
  std::map<std::string, std::shared_ptr<Inbox>> inboxes_;
  std::shared_ptr<CountingSink> sink_ = std::make_shared<CountingSink>();
  caf::actor stage_;
};

constexpr auto train = v1::Key::KIND_TRAIN;
constexpr std::uint64_t value_bytes = 24 + 48;

}  // namespace

BOOST_AUTO_TEST_CASE(a_training_step_from_values_to_commit) {
  MiddleStage stage;
  stage.values(train, 1, 0, 1);
  const auto outputs = stage.take("stage.2");
  BOOST_REQUIRE(outputs.size() == 1u);
  BOOST_TEST(outputs[0].key().value().layer() == "l1");
  BOOST_TEST(outputs[0].forward().samples() == 3u);
  BOOST_TEST(outputs[0].forward().tensor().requires_grad());
  BOOST_TEST(stage.released() == 0u);  // held until the backward is done

  stage.gradient(1, 0);
  BOOST_TEST(stage.released() == value_bytes + 24);
  const auto gradients = stage.take("stage.0");
  BOOST_REQUIRE(gradients.size() == 1u);  // none for the integer value
  BOOST_TEST(gradients[0].key().value().slot() == 0u);
  BOOST_TEST(!gradients[0].gradient().tensor().absent());
  const auto done = stage.take("pipeline");
  BOOST_REQUIRE(done.size() == 1u);
  BOOST_REQUIRE(done[0].has_micro_batch_done());
  BOOST_TEST(done[0].micro_batch_done().times().peak_live_micro_batches() == 1u);
  BOOST_TEST(done[0].micro_batch_done().times().live_bytes() == 0u);

  const auto reports = stage.take("optimizer");
  BOOST_REQUIRE(reports.size() == 1u);
  BOOST_TEST(reports[0].step_report().first_parameter() == 1u);
  BOOST_TEST(reports[0].step_report().squared_norm_bits_size() == 1);

  auto decision = stage.message(train, 1, 0);
  decision.mutable_step_decision()->add_lr(0.1);
  decision.mutable_step_decision()->set_scale(1);
  stage.deliver({"driver", "optimizer"}, decision.SerializeAsString());
  const auto commits = stage.take("optimizer");
  BOOST_REQUIRE(commits.size() == 1u);
  BOOST_TEST(commits[0].step_committed().stage() == 1u);
}

BOOST_AUTO_TEST_CASE(outputs_carry_the_unit_of_their_micro_batch) {
  MiddleStage stage;
  stage.values(train, 4, 1, 2);
  stage.values(train, 4, 0, 2);
  BOOST_REQUIRE(stage.inbox("stage.2").size() == 2u);  // in order, whatever came first
  BOOST_TEST(stage.inbox("stage.2")[0].unit == 40u);
  BOOST_TEST(stage.inbox("stage.2")[1].unit == 41u);
}

BOOST_AUTO_TEST_CASE(gpipe_returns_credit_after_the_forward) {
  Options options;
  options.schedule = v1::SCHEDULE_GPIPE;
  MiddleStage stage(options);
  stage.values(train, 1, 0, 2);
  BOOST_TEST(stage.released() == value_bytes);
  BOOST_TEST(stage.take("pipeline").empty());
}

BOOST_AUTO_TEST_CASE(an_evaluation_returns_credit_after_the_forward_and_awaits_nothing) {
  MiddleStage stage;
  stage.values(v1::Key::KIND_EVAL, 1, 0, 1);
  BOOST_TEST(stage.released() == value_bytes);
  BOOST_TEST(stage.take("stage.2").size() == 1u);
  BOOST_TEST(stage.take("pipeline").size() == 1u);
  stage.values(train, 1, 0, 1);  // a step may follow at once
  BOOST_TEST(stage.take("stage.2").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_failing_layer_is_reported_with_its_place_once) {
  Options options;
  options.attributes = {{"fail_at_step", 2}, {"fail_at_micro_batch", 1}};
  MiddleStage stage(options);
  stage.values(train, 2, 0, 2);
  stage.take("stage.2");
  stage.values(train, 2, 1, 2);
  const auto failed = stage.failure();
  BOOST_TEST(failed.where() == "stage 1 (node a), train step 2, micro-batch 1");
  BOOST_TEST(failed.what() == "layer l1: injected failure");
  BOOST_TEST(failed.stage() == 1u);
  BOOST_TEST(stage.released() == 2 * value_bytes);
  stage.gradient(2, 0);
  BOOST_TEST(stage.take("pipeline").empty());  // the first error is the only one
}

BOOST_AUTO_TEST_CASE(an_error_between_operations_does_not_name_the_last_one) {
  MiddleStage stage;
  stage.values(v1::Key::KIND_EVAL, 1, 0, 1);
  stage.take("pipeline");
  stage.deliver({"a", "stage.0"}, "\xff\xff");
  const auto messages = stage.take("pipeline");
  BOOST_REQUIRE(messages.size() == 1u);
  BOOST_TEST(messages[0].has_failed());
  BOOST_TEST(messages[0].key().step() == 0u);
}

BOOST_AUTO_TEST_CASE(values_of_another_type_or_precision_fail_the_job) {
  {
    MiddleStage stage;
    stage.value(train, 1, 0, 0, 1, v1::DTYPE_BFLOAT16);
    BOOST_TEST(stage.failure().what() ==
               "train step 1, micro-batch 0: output 0 of layer \"l0\" came as bfloat16 instead of "
               "float32");
  }
  {
    MiddleStage stage;
    stage.value(train, 1, 0, 0, 1, v1::DTYPE_FLOAT32, v1::PRECISION_FLOAT64);
    BOOST_TEST(stage.failure().what() ==
               "train step 1, micro-batch 0: output 0 of layer \"l0\" was computed in "
               "PRECISION_FLOAT64, this stage is in PRECISION_FLOAT32");
  }
  {
    MiddleStage stage;
    stage.values(train, 1, 0, 1);
    stage.take("pipeline");
    stage.gradient(1, 0, "stage.2", v1::DTYPE_FLOAT64);
    BOOST_TEST(stage.failure().what() ==
               "train step 1, micro-batch 0: gradient of output 0 of layer \"l1\" came as float64 "
               "instead of float32");
  }
}

BOOST_AUTO_TEST_CASE(messages_about_weights_that_are_not_tied_fail_the_job) {
  {
    MiddleStage stage;
    auto header = stage.message(train, 1, 0);
    header.mutable_tied_gradient()->set_parameter("l2.weight");
    header.mutable_tied_gradient()->mutable_tensor()->set_absent(true);
    stage.deliver({"a", "stage.2"}, header.SerializeAsString());
    BOOST_TEST(stage.failure().what() ==
               "a/stage.2: sent a gradient of \"l2.weight\", which is not tied to a weight of this "
               "stage");
  }
  {
    MiddleStage stage;
    auto header = stage.message(train, 1, 0);
    header.mutable_tied_value()->set_parameter("l0.weight");
    stage.deliver({"a", "stage.0"}, header.SerializeAsString());
    BOOST_TEST(stage.failure().what() ==
               "a/stage.0: sent values of \"l0.weight\", which no weight of this stage is tied to");
  }
}

BOOST_AUTO_TEST_CASE(messages_out_of_protocol_fail_the_job) {
  {
    MiddleStage stage;
    stage.value(train, 1, 0, 0, 1);
    stage.value(train, 1, 0, 0, 1);
    BOOST_TEST(stage.failure().what() == "train step 1, micro-batch 0: the same value twice");
  }
  {
    MiddleStage stage;
    stage.gradient(1, 0);
    BOOST_TEST(stage.failure().what().find("between its forward") != std::string::npos);
  }
  {
    MiddleStage stage;
    stage.values(train, 1, 0, 1);
    stage.take("pipeline");
    stage.gradient(1, 0, "stage.0");
    BOOST_TEST(stage.failure().what().find("which it does not get here") != std::string::npos);
  }
  {
    MiddleStage stage;
    stage.deliver({"a", "stage.0"}, "\xff\xff");
    BOOST_TEST(stage.failure().what().find("malformed header") != std::string::npos);
  }
  {
    MiddleStage stage;
    auto header = stage.message(train, 1, 0);
    header.mutable_step_decision();
    // Field 1000, a varint: not a field of this build's Message.
    stage.deliver({"a", "stage.0"}, header.SerializeAsString() + "\xc0\x3e\x01");
    BOOST_TEST(stage.failure().what().find("unknown fields") != std::string::npos);
  }
  {
    MiddleStage stage;
    auto header = stage.message(train, 1, 0);
    header.mutable_key()->mutable_value()->set_layer("l0");
    auto* forward = header.mutable_forward();
    forward->set_micro_batches(1);
    forward->mutable_tensor()->set_dtype(v1::DTYPE_FLOAT32);
    forward->mutable_tensor()->add_shape(1000);
    stage.deliver({"a", "stage.0"}, header.SerializeAsString(), Blob::copy_of("1234", 4));
    BOOST_TEST(stage.failure().what().find("does not fit a payload of 4 bytes") !=
               std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(an_older_generation_is_dropped_and_a_newer_one_is_an_error) {
  MiddleStage stage;
  auto header = stage.message(train, 1, 0);
  header.mutable_step_decision();
  header.mutable_key()->set_generation(4);
  stage.deliver({"driver", "optimizer"}, header.SerializeAsString());
  BOOST_TEST(stage.take("pipeline").empty());
  header.mutable_key()->set_generation(6);
  stage.deliver({"driver", "optimizer"}, header.SerializeAsString());
  BOOST_TEST(stage.failure().what().find("generation 6") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(weights_go_in_and_out_by_name) {
  MiddleStage stage;
  const auto weight = tensor_from_digest(3, v1::DTYPE_FLOAT32, {4});
  auto tensor = stage.message(v1::Key::KIND_UNSPECIFIED, 0, 0);
  tensor.mutable_state_tensor()->set_name("l1.weight");
  *tensor.mutable_state_tensor()->mutable_tensor() = make_header(Value{weight, false, false});
  stage.deliver({"driver", "pipeline"}, tensor.SerializeAsString(), weight.data);
  auto end = stage.message(v1::Key::KIND_UNSPECIFIED, 0, 0);
  end.mutable_state_end();
  stage.deliver({"driver", "pipeline"}, end.SerializeAsString());
  const auto loaded = stage.take("pipeline");
  BOOST_REQUIRE(loaded.size() == 1u);
  BOOST_TEST(loaded[0].has_state_loaded());
  BOOST_TEST(loaded[0].state_loaded().fingerprint().libraries() == "fake");
  BOOST_TEST(stage.released() == weight.data.size());

  auto want = stage.message(v1::Key::KIND_UNSPECIFIED, 0, 0);
  want.mutable_export_state();
  stage.deliver({"driver", "pipeline"}, want.SerializeAsString());
  BOOST_REQUIRE(stage.inbox("pipeline").size() == 2u);
  const auto& payload = stage.inbox("pipeline")[0].payload;
  BOOST_TEST(std::string(reinterpret_cast<const char*>(payload.data()), payload.size()) ==
             std::string(reinterpret_cast<const char*>(weight.data.data()), weight.data.size()));
  const auto sent = stage.take("pipeline");
  BOOST_TEST(sent[0].state_tensor().name() == "l1.weight");
  BOOST_TEST(sent[1].has_state_end());

  tensor.mutable_state_tensor()->set_name("l2.weight");
  stage.deliver({"driver", "pipeline"}, tensor.SerializeAsString(), weight.data);
  const auto failed = stage.failure();
  BOOST_TEST(failed.where() == "stage 1 (node a), weights");
  BOOST_TEST(failed.what().find("l2.weight") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(waiting_begins_with_the_first_micro_batch) {
  MiddleStage stage;
  auto end = stage.message(v1::Key::KIND_UNSPECIFIED, 0, 0);
  end.mutable_state_end();
  stage.deliver({"driver", "pipeline"}, end.SerializeAsString());
  stage.take("pipeline");
  stage.cluster().advance(5s);
  stage.values(v1::Key::KIND_EVAL, 1, 0, 1);
  const auto done = stage.take("pipeline");
  BOOST_REQUIRE(done.size() == 1u);
  BOOST_TEST(done[0].micro_batch_done().times().waiting() < 1.0);
}

BOOST_AUTO_TEST_CASE(a_slowed_stage_counts_the_delay_as_computing) {
  Options options;
  options.slow_down_seconds = 2;
  MiddleStage stage(options);
  stage.values(v1::Key::KIND_EVAL, 1, 0, 1);
  BOOST_TEST(stage.take("pipeline").empty());
  stage.cluster().advance(2500ms);
  const auto done = stage.take("pipeline");
  BOOST_REQUIRE(done.size() == 1u);
  const auto& times = done[0].micro_batch_done().times();
  BOOST_TEST(times.compute() >= 2.0);
  BOOST_TEST(times.compute() < 2.6);
}
