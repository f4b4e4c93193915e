// The LibTorch executor beyond the conformance suite: what needs layers of its own.
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <boost/test/unit_test.hpp>

#include "core/model_catalog.hpp"
#include "libtorch/device.hpp"
#include "libtorch/gradient_norm.hpp"
#include "libtorch/tensors.hpp"
#include "support/libtorch/mixed_values.hpp"
#include "unit/libtorch/stage_fixture.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

using Tensors = FunctionLayer::Tensors;

Tensors product(const Tensors& in) { return {in[0] * in[1]}; }
Tensors fail(const Tensors&) { TORCH_CHECK(false, "no luck today\nand more lines"); }
Tensors sum(const Tensors& in) {
  at::Tensor total = in[0];
  for (std::size_t i = 1; i < in.size(); ++i) total = total + in[i];
  return {total};
}
Tensors in_half(const Tensors& in) { return {in[0].to(at::kHalf)}; }
Tensors in_double(const Tensors& in) { return {in[0].to(at::kDouble) * 3}; }

Kinds all_kinds() {
  Kinds kinds = mixed_value_kinds();
  kinds.push_back({"test.product", product});
  kinds.push_back({"test.fail", fail});
  kinds.push_back({"test.sum", sum});
  kinds.push_back({"test.half", in_half});
  kinds.push_back({"test.double", in_double});
  return kinds;
}

const Kinds kinds = all_kinds();

/// Swaps height and width, and notes the strides of what it is given both ways.
class LayoutProbe final : public libtorch::Layer {
 public:
  LayoutProbe(std::string name, at::MemoryFormat layout, std::vector<std::string>& seen)
      : name_(std::move(name)), layout_(layout), seen_(&seen) {}

  at::MemoryFormat layout() const override { return layout_; }

  Tensors forward(const Tensors& in, const libtorch::ForwardContext&) override {
    note(name_, in[0]);
    const at::Tensor out = in[0].transpose(2, 3) * 2;
    out.register_hook([this](const at::Tensor& gradient) { note(name_ + " gradient", gradient); });
    return {out};
  }

 private:
  void note(const std::string& what, const at::Tensor& tensor) {
    seen_->push_back(what + " " + to_string(tensor.strides().vec()));
  }

  std::string name_;
  at::MemoryFormat layout_;
  std::vector<std::string>* seen_;
};

v1::Loss mse() {
  v1::Loss loss;
  loss.mutable_mse();
  return loss;
}

MicroBatch one_micro_batch(std::uint32_t samples) { return cut(0, samples, samples)[0]; }

LocalPipeline::Fields fields(Shape inputs, Shape targets) {
  LocalPipeline::Fields fields;
  fields["inputs"].tensor = pattern(std::move(inputs));
  fields["targets"].tensor = pattern(std::move(targets));
  return fields;
}

/// Final state after two steps of two uneven micro-batches.
std::vector<NamedTensor> trained(const Plan& plan, const LocalPipeline::Fields& batch,
                                 std::uint32_t samples, std::uint32_t micro_batch) {
  LocalPipeline pipeline(plan, factory(kinds));
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (const auto& part : cut(step, samples, micro_batch)) {
      LocalPipeline::Fields rows;
      for (const auto& [name, value] : batch) {
        const auto begin = static_cast<std::int64_t>(part.first_sample);
        rows[name].tensor = value.tensor.rows(begin, begin + part.samples);
      }
      pipeline.forward(part, rows);
      pipeline.backward(part);
    }
    pipeline.update({{0.1}, 1});
  }
  return pipeline.export_state();
}

void check_same_bits(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  std::map<std::string, HostTensor> by_name;
  for (const auto& tensor : b) by_name[tensor.name] = tensor.tensor;
  for (const auto& tensor : a)
    BOOST_TEST(same_bits(tensor.tensor, by_name.at(tensor.name)), tensor.name);
}

/// The error of a call, which must fail.
template <class T, class Call>
troupe::Error error_of(Call&& call) {
  troupe::Error error;
  bool failed = false;
  call(Completion<T>([&](troupe::Result<T> result) {
    failed = !result.ok();
    if (failed) error = result.error();
  }));
  BOOST_REQUIRE(failed);
  return error;
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_of_all_kinds_pass_through_three_stages) {
  std::vector<v1::Layer> layers{linear("first", 4, 3), layer("spread", "test.spread", 4),
                                layer("pass", "identity", 4), layer("gather", "test.gather"),
                                linear("last", 3, 2)};
  const auto batch = fields({5, 4}, {5, 2});
  auto one = request(layers, {});
  auto three = request(layers, {"pass", "gather"});
  one.loss = three.loss = mse();
  const auto trained_on_one = trained(plan(one), batch, 5, 3);
  check_same_bits(trained_on_one, trained(plan(three), batch, 5, 3));
  LocalPipeline fresh(plan(one), factory(kinds));
  BOOST_TEST(!same_bits(fresh.export_state()[0].tensor, trained_on_one[0].tensor));
}

BOOST_AUTO_TEST_CASE(only_differentiable_values_get_gradients) {
  std::vector<v1::Layer> layers{linear("first", 4, 3), layer("spread", "test.spread", 4),
                                layer("gather", "test.gather")};
  const Plan two = plan(request(layers, {"gather"}));
  auto executor = factory(kinds)(two.stages[0].config);
  BOOST_REQUIRE(executor->initialise(two.stages[0].config).ok());
  ForwardTask task{one_micro_batch(2), {Value{pattern({2, 4}), false, false}}};
  std::vector<Value> spread_values;
  executor->forward(std::move(task), [&](troupe::Result<ForwardOutcome> outcome) {
    BOOST_REQUIRE(outcome.ok());
    spread_values = outcome->outputs;
  });
  BOOST_REQUIRE_EQUAL(spread_values.size(), 4u);
  BOOST_TEST(spread_values[0].requires_grad);
  BOOST_TEST(!spread_values[1].requires_grad);
  BOOST_TEST(spread_values[1].tensor.dtype == v1::DTYPE_INT64);
  BOOST_TEST(spread_values[2].tensor.dtype == v1::DTYPE_BOOL);
  BOOST_TEST(spread_values[3].absent);

  LocalPipeline pipeline(two, factory(kinds));
  const auto part = one_micro_batch(2);
  pipeline.forward(part, fields({2, 4}, {2, 3}));
  Value gradient;
  gradient.tensor = pattern({2, 3});
  const auto gradients = pipeline.backward(part, {{"gather:0", gradient}});
  BOOST_TEST(gradients.count("spread:0") == 1);
  BOOST_TEST(gradients.count("spread:1") == 0);
  BOOST_TEST(gradients.count("field:inputs") == 0);
}

BOOST_AUTO_TEST_CASE(a_backward_without_any_gradient_is_accepted) {
  std::vector<v1::Layer> layers{linear("first", 4, 3), layer("cut", "test.constant"),
                                linear("last", 3, 2)};
  auto cut_graph = request(layers, {"last"});
  cut_graph.loss = mse();
  LocalPipeline pipeline(plan(cut_graph), factory(kinds));
  const auto part = one_micro_batch(2);
  pipeline.forward(part, fields({2, 4}, {2, 2}));
  pipeline.backward(part);
  const auto norms = pipeline.squared_norms();
  BOOST_REQUIRE_EQUAL(norms.size(), 4u);
  BOOST_TEST(norms[0] == 0);
  BOOST_TEST(norms[1] == 0);
  BOOST_TEST(norms[2] > 0);
  pipeline.update({{0.1}, 1});
}

BOOST_AUTO_TEST_CASE(gradients_of_several_readers_are_added) {
  // product reads the same value in both places: the derivative of x * x.
  v1::Layer square = layer("square", "test.product");
  read(square, "first");
  read(square, "first");
  v1::Layer cube = layer("cube", "test.product");
  read(cube, "square");
  read(cube, "first");
  std::vector<v1::Layer> layers{linear("first", 4, 3), square, cube};
  LocalPipeline pipeline(plan(request(layers, {})), factory(kinds));
  const auto part = one_micro_batch(2);
  auto batch = fields({2, 4}, {2, 3});
  const auto forward = pipeline.forward(part, batch);
  Value gradient;
  gradient.tensor = pattern({2, 3});
  pipeline.backward(part, {{"cube:0", gradient}});

  // d(x^3) = 3 x^2; the bias' gradient is its sum over the samples.
  const at::Tensor cubes = libtorch::to_tensor(forward.outputs.at("cube:0").tensor);
  const at::Tensor x = cubes.abs().pow(1.0 / 3.0) * cubes.sign();
  const at::Tensor expected = (x * x * 3 * libtorch::to_tensor(gradient.tensor)).sum(0);
  const auto found = static_cast<libtorch::LibtorchExecutor&>(pipeline.stage(0)).gradients().back();
  BOOST_TEST(found.name == "first.bias");
  BOOST_TEST((libtorch::to_tensor(found.tensor) - expected).abs().max().item<double>() < 1e-12);
}

/// "shared" is read by two layers in the middle, by one that does not need it, and by a later one.
std::vector<v1::Layer> layers_around_a_shared_value() {
  std::vector<v1::Layer> layers{linear("shared", 4, 3)};
  for (const char* name : {"left", "right"}) {
    layers.push_back(linear(name, 3, 3));
    read(layers.back(), "shared");
  }
  v1::Layer middle = layer("middle", "test.sum");
  for (const char* name : {"left", "right"}) read(middle, name);
  v1::Layer blind = layer("blind", "tanh");
  v1::Layer late = linear("late", 3, 3);
  read(late, "shared");
  v1::Layer last = layer("last", "test.sum");
  for (const char* name : {"blind", "late", "shared"}) read(last, name);
  layers.insert(layers.end(), {middle, blind, late, last});
  return layers;
}

BOOST_AUTO_TEST_CASE(a_value_with_readers_in_several_stages_gives_the_same_bits_in_float32) {
  const auto layers = layers_around_a_shared_value();
  const auto batch = fields({7, 4}, {7, 3});
  const auto trained_at = [&](const std::vector<std::string>& first_layers) {
    auto cut = request(layers, first_layers);
    cut.loss = mse();
    cut.precision = v1::PRECISION_FLOAT32;
    return trained(plan(cut), batch, 7, 3);
  };
  const auto whole = trained_at({});
  const std::vector<std::vector<std::string>> cuts{
      {"left", "late"},
      {"right"},
      {"left", "blind", "late"},
      {"left", "right", "middle", "blind", "late", "last", "loss"}};
  for (const auto& cut : cuts) BOOST_TEST_CONTEXT(cut.size() + 1 << " stages") {
      check_same_bits(whole, trained_at(cut));
    }
}

BOOST_AUTO_TEST_CASE(a_layer_of_another_float_type_gives_the_same_bits_cut_and_uncut) {
  const std::vector<v1::Layer> layers{linear("first", 4, 3), layer("half", "test.half"),
                                      layer("double", "test.double"), layer("tanh", "tanh"),
                                      linear("last", 3, 2)};
  const auto batch = fields({5, 4}, {5, 2});
  const auto trained_at = [&](const std::vector<std::string>& first_layers) {
    auto cut = request(layers, first_layers);
    cut.loss = mse();
    cut.precision = v1::PRECISION_FLOAT32;
    return trained(plan(cut), batch, 5, 3);
  };
  const auto whole = trained_at({});
  check_same_bits(whole, trained_at({"double"}));
  check_same_bits(whole, trained_at({"half", "double", "tanh", "last"}));
}

BOOST_AUTO_TEST_CASE(batch_norm_refuses_one_value_per_channel_in_training_only) {
  v1::Model model;
  auto* resnet = model.mutable_resnet();
  resnet->add_blocks(1);
  resnet->set_block(v1::ResNet::BLOCK_BASIC);
  resnet->set_stem(v1::ResNet::STEM_SMALL);
  resnet->set_width_multiplier(0.125);
  resnet->set_num_classes(2);
  auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  LocalPipeline pipeline(plan(request(*layers, {})), factory());
  const auto before = pipeline.export_state();
  auto part = one_micro_batch(1);
  LocalPipeline::Fields one_pixel;
  one_pixel["inputs"].tensor = pattern({1, 3, 1, 1});
  part.kind = v1::Key::KIND_EVAL;
  pipeline.forward(part, one_pixel);
  part.kind = v1::Key::KIND_TRAIN;
  BOOST_CHECK_EXCEPTION(pipeline.forward(part, one_pixel), std::runtime_error, [](const auto& e) {
    return std::string(e.what()).find(
               "batch norm needs more than one value per channel when training") !=
           std::string::npos;
  });
  check_same_bits(before, pipeline.export_state());
}

namespace {

/// A linear layer from 4 inputs to 3 classes, and a batch of 2 with these targets.
LocalPipeline::Forward classify(const v1::Loss& loss, const std::vector<std::int64_t>& indices,
                                Shape shape = {2}) {
  auto classes = request({linear("first", 4, 3)}, {});
  classes.loss = loss;
  LocalPipeline pipeline(plan(classes), factory());
  LocalPipeline::Fields batch;
  batch["inputs"].tensor = pattern({2, 4});
  batch["targets"].tensor =
      HostTensor{v1::DTYPE_INT64, std::move(shape),
                 troupe::Blob::copy_of(indices.data(), indices.size() * sizeof(std::int64_t))};
  auto forward = pipeline.forward(one_micro_batch(2), batch);
  pipeline.backward(one_micro_batch(2));
  for (const double norm : pipeline.squared_norms()) BOOST_TEST(std::isfinite(norm));
  return forward;
}

void expect_refused(const v1::Loss& loss, const std::vector<std::int64_t>& indices, Shape shape,
                    const std::string& what) {
  BOOST_CHECK_EXCEPTION(
      classify(loss, indices, std::move(shape)), std::runtime_error, [&](const auto& e) {
        BOOST_TEST(std::string(e.what()).find(what) != std::string::npos, e.what());
        return true;
      });
}

}  // namespace

BOOST_AUTO_TEST_CASE(class_indices_that_are_none_are_refused) {
  v1::Loss loss;
  loss.mutable_cross_entropy();
  expect_refused(loss, {1, -1}, {2}, "class index -1");
  expect_refused(loss, {3, 1}, {2}, "class index 3 among the targets, but there are 3 classes");
  expect_refused(loss, {1, 1}, {2, 1}, "do not fit outputs");
  loss.mutable_cross_entropy()->set_ignore_index(1);
  expect_refused(loss, {1, -100}, {2}, "class index -100");
}

BOOST_AUTO_TEST_CASE(a_micro_batch_in_which_nothing_counts_has_no_loss_and_no_gradient) {
  v1::Loss loss;
  loss.mutable_cross_entropy()->set_label_smoothing(0.1);
  BOOST_TEST(classify(loss, {-100, 2}).loss.loss > 0);
  BOOST_TEST(classify(loss, {-100, -100}).loss.loss == 0);
}

BOOST_AUTO_TEST_CASE(as_many_positive_weights_as_outputs_or_one) {
  v1::Loss loss;
  auto* weights = loss.mutable_bce_with_logits()->mutable_pos_weight();
  weights->Add(2);
  BOOST_TEST(classify(loss, {0, 1, 1, 0, 0, 1}, {2, 3}).loss.loss > 0);
  weights->Add(3);
  expect_refused(loss, {0, 1, 1, 0, 0, 1}, {2, 3}, "pos_weight has 2 numbers");
}

BOOST_AUTO_TEST_CASE(open_threads_are_those_the_process_began_with) {
  const Plan two = plan(request({linear("first", 4, 3)}, {}));
  auto config = two.stages[0].config;
  config.set_threads(0);
  const auto open = factory()(config);
  BOOST_REQUIRE(open->initialise(config).ok());
  const auto threads = open->fingerprint().threads();
  BOOST_TEST(threads > 0u);
  config.set_threads(threads + 1);
  const auto fixed = factory()(config);
  BOOST_REQUIRE(fixed->initialise(config).ok());
  BOOST_TEST(fixed->fingerprint().threads() == threads + 1);
  config.set_threads(0);
  const auto later = factory()(config);
  BOOST_REQUIRE(later->initialise(config).ok());
  BOOST_TEST(later->fingerprint().threads() == threads);
}

BOOST_AUTO_TEST_CASE(the_fingerprint_tells_the_versions_of_what_is_loaded) {
  const Plan small = plan(request({linear("first", 4, 3)}, {}));
  const auto executor = factory()(small.stages[0].config);
  BOOST_REQUIRE(executor->initialise(small.stages[0].config).ok());
  const auto fingerprint = executor->fingerprint();
  BOOST_TEST(fingerprint.libraries().find("LibTorch 1.13") == 0u, fingerprint.libraries());
  BOOST_TEST(!fingerprint.blas_kernel().empty());
  BOOST_TEST(fingerprint.device() == "cpu");
}

BOOST_AUTO_TEST_CASE(an_exception_names_its_layer_in_one_line) {
  std::vector<v1::Layer> layers{linear("first", 4, 3), layer("broken", "test.fail")};
  const Plan broken = plan(request(layers, {"broken"}));
  auto executor = factory(kinds)(broken.stages[1].config);
  BOOST_REQUIRE(executor->initialise(broken.stages[1].config).ok());
  ForwardTask task;
  task.micro_batch.step = 4;
  task.micro_batch.index = 2;
  task.inputs.resize(1);
  task.inputs[0].tensor = pattern({2, 3});
  const auto error = error_of<ForwardOutcome>(
      [&](auto done) { executor->forward(std::move(task), std::move(done)); });
  BOOST_TEST(error.where == "forward");
  BOOST_TEST(error.what == "layer 'broken': no luck today");
  BOOST_TEST(error.hint.find("shapes and types") != std::string::npos, error.hint);
  executor->discard_all();
}

BOOST_AUTO_TEST_CASE(a_shape_that_does_not_fit_names_the_layer) {
  const Plan small = plan(request({linear("first", 4, 3)}, {}));
  auto executor = factory()(small.stages[0].config);
  BOOST_REQUIRE(executor->initialise(small.stages[0].config).ok());
  ForwardTask task;
  task.inputs.resize(1);
  task.inputs[0].tensor = pattern({2, 5});
  const auto error = error_of<ForwardOutcome>(
      [&](auto done) { executor->forward(std::move(task), std::move(done)); });
  BOOST_TEST(error.what.find("layer 'first'") == 0, error.what);
  BOOST_TEST(error.what.find('\n') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_and_a_missing_parameter_are_errors) {
  const Plan unknown = plan(request({layer("first", "nonsense")}, {}));
  auto executor = factory()(unknown.stages[0].config);
  const auto result = executor->initialise(unknown.stages[0].config);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST((result.error().code == troupe::ErrorCode::bad_input));
  BOOST_TEST(result.error().what == "unknown kind 'nonsense'");

  const Plan bare = plan(request({layer("first", "linear")}, {}));
  const auto missing = factory()(bare.stages[0].config)->initialise(bare.stages[0].config);
  BOOST_REQUIRE(!missing.ok());
  BOOST_TEST(missing.error().what.find("layer 'first'") == 0, missing.error().what);
  BOOST_TEST(missing.error().what.find("'weight'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_lists_those_that_are) {
  BOOST_TEST(libtorch::find_device("cpu").ok());
  const auto none = libtorch::find_device("cuda:99");
  BOOST_REQUIRE(!none.ok());
  BOOST_TEST((none.error().code == troupe::ErrorCode::bad_input));
  BOOST_TEST(none.error().hint.find("this LibTorch has: cpu") == 0, none.error().hint);
}

BOOST_AUTO_TEST_CASE(a_frozen_stage_passes_gradients_and_keeps_its_weights) {
  auto frozen = request({linear("first", 4, 3), linear("middle", 3, 3), linear("last", 3, 2)},
                        {"middle", "last"});
  frozen.loss = mse();
  frozen.stages[1].set_frozen(true);
  LocalPipeline pipeline(plan(frozen), factory());
  const auto before = pipeline.export_state();
  const auto part = one_micro_batch(2);
  pipeline.forward(part, fields({2, 4}, {2, 2}));
  pipeline.backward(part);
  const auto norms = pipeline.squared_norms();
  BOOST_TEST(norms[0] > 0);
  BOOST_TEST(norms[2] == 0);
  pipeline.update({{0.1}, 1});
  const auto after = pipeline.export_state();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool in_frozen = before[i].name.rfind("middle", 0) == 0;
    BOOST_TEST(same_bits(before[i].tensor, after[i].tensor) == in_frozen, before[i].name);
  }
}

BOOST_AUTO_TEST_CASE(state_is_checked_whole_before_any_of_it_is_replaced) {
  const Plan small = plan(request({linear("first", 4, 2)}, {}));
  LocalPipeline pipeline(small, factory());
  const auto before = pipeline.export_state();
  NamedTensor good{"first.weight", pattern({2, 4}), false};
  NamedTensor misshapen{"first.bias", pattern({3}), false};
  NamedTensor stranger{"second.bias", pattern({2}), false};
  auto error = error_of<void>([&](auto done) {
    pipeline.stage(0).import_state({good, misshapen}, std::move(done));
  });
  BOOST_TEST(error.to_string() == "tensor 'first.bias': shape [3] instead of [2]");
  error = error_of<void>([&](auto done) {
    pipeline.stage(0).import_state({good, stranger}, std::move(done));
  });
  BOOST_TEST(error.where == "tensor 'second.bias'");
  check_same_bits(before, pipeline.export_state());

  pipeline.import_state({{"first.weight", pattern({2, 4})}, {"first.bias", pattern({2})}});
  BOOST_TEST(same_bits(pipeline.export_state()[0].tensor, pattern({2, 4})));
}

BOOST_AUTO_TEST_CASE(exported_state_does_not_change_with_the_next_step) {
  auto config = request({linear("first", 4, 2)}, {});
  config.loss = mse();
  LocalPipeline pipeline(plan(config), factory());
  const auto kept = pipeline.export_state();
  const troupe::Blob copy =
      troupe::Blob::copy_of(kept[0].tensor.data.data(), kept[0].tensor.data.size());
  const auto part = one_micro_batch(2);
  pipeline.forward(part, fields({2, 4}, {2, 2}));
  pipeline.backward(part);
  pipeline.update({{0.1}, 1});
  BOOST_TEST(std::memcmp(copy.data(), kept[0].tensor.data.data(), copy.size()) == 0);
  BOOST_TEST(!same_bits(kept[0].tensor, pipeline.export_state()[0].tensor));
}

BOOST_AUTO_TEST_CASE(a_resnet_gives_the_same_bits_with_every_layer_a_stage) {
  v1::Model model;
  auto* resnet = model.mutable_resnet();
  for (int i = 0; i < 3; ++i) resnet->add_blocks(1);
  resnet->set_block(v1::ResNet::BLOCK_BOTTLENECK);
  resnet->set_width_multiplier(0.25);
  resnet->set_num_classes(10);
  auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  std::vector<std::string> every;
  for (std::size_t i = 1; i < layers->size(); ++i) every.push_back((*layers)[i].name());
  // The smaller images end as 1x1, where all layouts look alike to LibTorch.
  for (const std::int64_t image : {32, 8}) {
    const auto batch = fields({4, 3, image, image}, {4, 10});
    for (const auto precision : {v1::PRECISION_FLOAT32, v1::PRECISION_FLOAT64}) {
      auto one = request(*layers, {});
      auto many = request(*layers, every);
      one.loss = many.loss = mse();
      one.precision = many.precision = precision;
      check_same_bits(trained(plan(one), batch, 4, 2), trained(plan(many), batch, 4, 2));
    }
  }
}

BOOST_AUTO_TEST_CASE(layers_get_values_and_gradients_in_the_layout_they_declare) {
  std::vector<v1::Layer> layers{layer("first", "test.row_major"),
                                layer("second", "test.channels_last"),
                                layer("third", "test.row_major")};
  for (const auto& cuts : {std::vector<std::string>{}, {"second"}, {"second", "third"}}) {
    auto registry = std::make_shared<libtorch::LayerKinds>();
    std::vector<std::string> seen;
    const auto add = [&](const std::string& kind, at::MemoryFormat layout) {
      const auto create = [&seen, layout](const libtorch::LayerSetup& setup) {
        return std::make_unique<LayoutProbe>(setup.config().name(), layout, seen);
      };
      BOOST_REQUIRE(registry->add(kind, create).ok());
    };
    add("test.row_major", at::MemoryFormat::Contiguous);
    add("test.channels_last", at::MemoryFormat::ChannelsLast);
    LocalPipeline pipeline(plan(request(layers, cuts)), [&](const v1::StageConfig&) {
      return std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), registry);
    });
    LocalPipeline::Fields batch;
    batch["inputs"].tensor = pattern({2, 3, 4, 5});
    batch["inputs"].requires_grad = true;
    const auto part = one_micro_batch(2);
    pipeline.forward(part, batch);
    Value gradient;
    gradient.tensor = pattern({2, 3, 5, 4});
    pipeline.backward(part, {{"third:0", gradient}});
    const std::vector<std::string> expected{
        "first [60, 20, 5, 1]",           "second [60, 1, 12, 3]",
        "third [60, 20, 5, 1]",           "third gradient [60, 20, 4, 1]",
        "second gradient [60, 1, 15, 3]", "first gradient [60, 20, 4, 1]"};
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(norms_are_summed_in_double_and_find_what_is_not_finite) {
  const at::Tensor numbers = libtorch::to_tensor(pattern({7, 5}));
  const double expected = (numbers * numbers).sum().item<double>();
  BOOST_TEST(std::abs(libtorch::squared_norm(numbers).value - expected) < 1e-12 * expected);
  BOOST_TEST(libtorch::squared_norm(numbers).finite);
  BOOST_TEST(!libtorch::squared_norm(numbers / 0.0).finite);
  BOOST_TEST(libtorch::squared_norm((numbers + 2) * 1e200).finite);
  BOOST_TEST(libtorch::squared_norm(at::Tensor()).value == 0);
}
