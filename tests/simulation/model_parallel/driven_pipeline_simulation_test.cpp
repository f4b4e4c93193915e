#include <boost/test/unit_test.hpp>

#include <cstring>

#include "actors/stage_actor.hpp"
#include "scenario.hpp"
#include "troupe/model_parallel/pipeline.hpp"

namespace troupe::mp::test {
namespace {

PipelineOptions options_for(const std::vector<std::string>& nodes) {
  PipelineOptions options;
  for (auto& layer : layers_of(Scenario()))
    *options.model.mutable_layers()->add_layers() = std::move(layer);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    v1::Stage stage;
    stage.set_node(nodes[i]);
    stage.set_device("fake");
    if (i != 0) stage.set_first_layer("l" + std::to_string(i));
    options.stages.push_back(stage);
  }
  options.optimizer.mutable_sgd()->set_lr(0.1);
  options.seed = 7;
  return options;
}

struct Driven {
  explicit Driven(const std::vector<std::string>& nodes)
      : session(troupe::testing::job_with_nodes({"a", "b"}), {{stage_factory, spawn_stage}}),
        pipeline(value_of(spawn_pipeline(session, options_for(nodes)))) {}

  troupe::testing::LocalSession session;
  std::unique_ptr<Pipeline> pipeline;
};

HostTensor rows(std::int64_t count, float value) {
  HostTensor tensor{
      v1::DTYPE_FLOAT32, {count, 4}, Blob::uninitialized(static_cast<std::size_t>(count) * 16)};
  auto* data = reinterpret_cast<float*>(tensor.data.mutable_data());
  for (std::int64_t i = 0; i < 4 * count; ++i) data[i] = value + static_cast<float>(i);
  return tensor;
}

TensorMap train_two_steps(Pipeline& pipeline) {
  for (int i = 0; i < 2; ++i) {
    const auto outputs = value_of(pipeline.forward(rows(5, 1), 2));
    BOOST_TEST(outputs.shape[0] == 5);
    BOOST_TEST(pipeline.backward(rows(5, 3)).ok());
    BOOST_TEST(pipeline.step().ok());
  }
  return value_of(pipeline.state());
}

BOOST_AUTO_TEST_CASE(a_drivers_own_loss_trains_the_same_weights_on_one_and_on_two_nodes) {
  Driven one({"a"});
  Driven two({"a", "b"});
  const auto initial = value_of(one.pipeline->state());
  const auto trained = train_two_steps(*one.pipeline);
  BOOST_TEST(!same_state(initial, trained));
  BOOST_TEST(same_state(trained, train_two_steps(*two.pipeline)));
}

BOOST_AUTO_TEST_CASE(gradients_accumulate_until_step) {
  Driven driven({"a", "b"});
  const auto initial = value_of(driven.pipeline->state());
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(driven.pipeline->forward(rows(4, static_cast<float>(i)), 2).ok());
    BOOST_TEST(driven.pipeline->backward(rows(4, 1)).ok());
  }
  const auto norm = driven.pipeline->step();
  BOOST_REQUIRE(norm.ok());
  BOOST_TEST(*norm > 0);
  const auto trained = value_of(driven.pipeline->state());
  BOOST_TEST(!same_state(initial, trained));
}

BOOST_AUTO_TEST_CASE(a_prediction_changes_nothing_and_does_not_depend_on_the_cut) {
  Driven one({"a"});
  Driven two({"a", "b"});
  const auto before = value_of(two.pipeline->state());
  const auto first = value_of(one.pipeline->predict(rows(5, 1), 2));
  const auto second = value_of(two.pipeline->predict(rows(5, 1), 2));
  BOOST_TEST(first.data.size() == second.data.size());
  BOOST_TEST(std::memcmp(first.data.data(), second.data.data(), first.data.size()) == 0);
  BOOST_TEST(same_state(before, value_of(two.pipeline->state())));
}

template <class T>
void expect_refused(const Result<T>& result, const std::string& text) {
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST((result.error().code == ErrorCode::bad_input));
  BOOST_TEST(result.error().to_string().find(text) != std::string::npos,
             result.error().to_string());
}

void expect_no_state_calls(Pipeline& pipeline) {
  const std::string text = "a step is under way; call step first";
  expect_refused(pipeline.predict(rows(4, 1), 2), text);
  expect_refused(pipeline.state(), text);
  expect_refused(pipeline.load_state({}), text);
}

BOOST_AUTO_TEST_CASE(calls_that_belong_between_steps_are_refused_within_one) {
  Driven driven({"a", "b"});
  Driven undisturbed({"a", "b"});
  auto& pipeline = *driven.pipeline;
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(pipeline.forward(rows(5, 1), 2).ok());
    expect_no_state_calls(pipeline);
    BOOST_TEST(pipeline.backward(rows(5, 3)).ok());
    expect_no_state_calls(pipeline);
    BOOST_TEST(pipeline.step().ok());
    BOOST_TEST(pipeline.predict(rows(5, 1), 2).ok());
  }
  BOOST_TEST(same_state(value_of(pipeline.state()), train_two_steps(*undisturbed.pipeline)));
}

BOOST_AUTO_TEST_CASE(calls_out_of_order_and_misfits_are_refused_and_change_nothing) {
  Driven driven({"a"});
  Driven undisturbed({"a"});
  auto& pipeline = *driven.pipeline;
  for (int i = 0; i < 2; ++i) {
    expect_refused(pipeline.step(), "step without a backward");
    expect_refused(pipeline.backward(rows(5, 1)), "backward without a forward");
    expect_refused(pipeline.forward(rows(0, 1), 2), "[0, 4]");
    expect_refused(pipeline.forward(rows(5, 1), 0), "micro_batch_size");
    BOOST_TEST(pipeline.forward(rows(5, 1), 2).ok());
    expect_refused(pipeline.forward(rows(5, 1), 2), "call backward first");
    expect_refused(pipeline.step(), "call backward first");
    expect_refused(pipeline.backward(rows(4, 1)), "the outputs have shape [5, 4]");
    auto narrow = rows(5, 1);
    narrow.shape = {5, 2, 2};
    expect_refused(pipeline.backward(narrow), "[5, 2, 2]");
    auto integers = rows(5, 1);
    integers.dtype = v1::DTYPE_INT32;
    expect_refused(pipeline.backward(integers), "int32");
    BOOST_TEST(pipeline.backward(rows(5, 3)).ok());
    BOOST_TEST(pipeline.step().ok());
  }
  BOOST_TEST(same_state(value_of(pipeline.state()), train_two_steps(*undisturbed.pipeline)));
}

BOOST_AUTO_TEST_CASE(options_are_checked_before_anything_is_spawned) {
  troupe::testing::LocalSession session(troupe::testing::job_with_nodes({"a", "b"}),
                                        {{stage_factory, spawn_stage}});
  expect_refused(spawn_pipeline(session,
                                [] {
                                  auto options = options_for({"a"});
                                  options.optimizer.mutable_sgd()->clear_lr();
                                  return options;
                                }()),
                 "spawn_pipeline: optimizer.sgd.lr: optimizer.sgd.lr is missing; write `lr: ...`");
  expect_refused(spawn_pipeline(session,
                                [] {
                                  auto options = options_for({"a"});
                                  options.clip_grad_norm = -1;
                                  return options;
                                }()),
                 "clip_grad_norm is -1");
  expect_refused(
      spawn_pipeline(session,
                     [] {
                       auto options = options_for({"a"});
                       options.model.mutable_layers()->mutable_layers(1)->add_reads()->set_field(
                           "mask");
                       return options;
                     }()),
      "reads field \"mask\"");
}

BOOST_AUTO_TEST_CASE(nodes_of_different_numerics_are_refused_unless_allowed) {
  auto options = options_for({"a", "b"});
  auto& layer = *options.model.mutable_layers()->mutable_layers(1);
  (*layer.mutable_attributes())["library_version"] = 2;
  const std::string difference = "libraries is \"fake\" on a, \"fake 2\" on b";
  {
    troupe::testing::LocalSession session(troupe::testing::job_with_nodes({"a", "b"}),
                                          {{stage_factory, spawn_stage}});
    const auto refused = spawn_pipeline(session, options);
    expect_refused(refused, difference);
    BOOST_TEST(refused.error().hint.find("set allow_mixed_numerics: true") == 0u);
  }
  troupe::testing::LocalSession session(troupe::testing::job_with_nodes({"a", "b"}),
                                        {{stage_factory, spawn_stage}});
  options.allow_mixed_numerics = true;
  const auto pipeline = value_of(spawn_pipeline(session, options));
  BOOST_TEST(pipeline->predict(rows(4, 1), 2).ok());
  BOOST_REQUIRE(session.recorded().lines.size() == 1u);
  BOOST_TEST(session.recorded().lines[0].find(difference) != std::string::npos);
  BOOST_REQUIRE(session.events().size() == 1u);
  BOOST_TEST(session.events()[0].find("\"event\":\"mixed_numerics\"") != std::string::npos);
}

}  // namespace
}  // namespace troupe::mp::test
