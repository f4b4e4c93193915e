#include <boost/test/unit_test.hpp>

#include <cstring>

#include "actors/stage_actor.hpp"
#include "scenario.hpp"
#include "troupe/model_parallel/pipeline.hpp"

namespace troupe::mp::test {
namespace {

struct Driven {
  explicit Driven(const std::vector<std::string>& nodes)
      : session(troupe::testing::job_with_nodes({"a", "b"}), {{stage_factory, spawn_stage}}) {
    PipelineOptions options;
    for (auto& layer : layers_of(Scenario()))
      *options.model.mutable_layers()->add_layers() = std::move(layer);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      v1::Stage stage;
      stage.set_node(nodes[i]);
      stage.set_device("fake");
      if (i != 0) stage.set_first_layer("l" + std::to_string(i + 1));
      options.stages.push_back(stage);
    }
    options.optimizer.mutable_sgd()->set_lr(0.1);
    options.seed = 7;
    pipeline = value_of(spawn_pipeline(session, options));
  }

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

BOOST_AUTO_TEST_CASE(calls_out_of_order_are_errors) {
  {
    Driven driven({"a"});
    BOOST_TEST(!driven.pipeline->step().ok());
  }
  {
    Driven driven({"a"});
    BOOST_TEST(!driven.pipeline->backward(rows(4, 1)).ok());
  }
  {
    Driven driven({"a"});
    BOOST_TEST(driven.pipeline->forward(rows(4, 1), 2).ok());
    BOOST_TEST(!driven.pipeline->backward(rows(3, 1)).ok());
  }
  {
    Driven driven({"a"});
    BOOST_TEST(driven.pipeline->forward(rows(4, 1), 2).ok());
    BOOST_TEST(!driven.pipeline->forward(rows(4, 1), 2).ok());
  }
}

}  // namespace
}  // namespace troupe::mp::test
