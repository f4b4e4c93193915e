#include "conformance/executor_suite.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "conformance/executor_chain.hpp"

namespace troupe::mp::conformance {
namespace {

bool all_zero(const std::vector<double>& norms) {
  return std::all_of(norms.begin(), norms.end(), [](double norm) { return norm == 0; });
}

HostTensor ones(Shape shape) {
  HostTensor tensor;
  tensor.dtype = v1::DTYPE_FLOAT64;
  tensor.shape = std::move(shape);
  const auto count = value_of(element_count(tensor.shape));
  tensor.data = Blob::uninitialized(count * sizeof(double));
  auto* out = reinterpret_cast<double*>(tensor.data.mutable_data());
  std::fill(out, out + count, 1.0);
  return tensor;
}

}  // namespace

void completes_calls_once_and_in_order(const ExecutorFactory& create) {
  Chain chain(create, {});
  std::mutex mutex;
  std::vector<std::string> completed;
  const auto note = [&](const std::string& name) {
    return [&, name](const auto& result) {
      const std::lock_guard lock(mutex);
      completed.push_back(name + (result.ok() ? "" : " failed"));
    };
  };
  auto& executor = chain.stage(0);
  const auto micro_batch = training(1, 0, 3, 1);
  const Value inputs{test_inputs(1, 3), false, false};
  const Value targets{test_targets(1, 3), false, false};
  executor.forward({micro_batch, {inputs, targets}}, note("forward"));
  executor.backward({micro_batch, {}}, note("backward"));
  executor.summarise_gradients(note("summarise"));
  executor.update({{0.1}, 1}, note("update"));
  executor.export_state(note("export"));
  // Calls complete in order: this one is behind all others.
  check_ok(await<void>([&](auto done) { executor.import_state({}, std::move(done)); }));
  const std::vector<std::string> expected{"forward", "backward", "summarise", "update", "export"};
  BOOST_TEST(completed == expected, boost::test_tools::per_element());
}

void evaluation_keeps_nothing(const ExecutorFactory& create) {
  Chain chain(create, {});
  auto micro_batch = training(1, 0, 3, 1);
  micro_batch.kind = v1::Key::KIND_EVAL;
  const auto before = chain.state();
  const auto forward = chain.forward(micro_batch, test_inputs(1, 3), test_targets(1, 3));
  BOOST_TEST(forward.has_loss);
  BOOST_TEST(forward.live_bytes == 0u);
  BOOST_TEST(same_bytes(before, chain.state()));
  const auto again = chain.forward(micro_batch, test_inputs(1, 3), test_targets(1, 3));
  BOOST_TEST(again.loss.loss == forward.loss.loss);
  const auto backward = await<BackwardOutcome>([&](auto done) {
    chain.stage(0).backward({micro_batch, {}}, std::move(done));
  });
  BOOST_TEST(!backward.ok());
}

void gradients_accumulate_until_the_update(const ExecutorFactory& create) {
  Chain chain(create, {});
  BOOST_TEST(all_zero(chain.squared_norms()));
  const auto first = training(1, 0, 3, 0.5);
  const auto second = training(1, 1, 3, 0.5);
  BOOST_TEST(chain.forward(first, test_inputs(1, 3), test_targets(1, 3)).live_bytes > 0u);
  chain.backward(first);
  const auto one = chain.squared_norms();
  BOOST_TEST(one.size() == 4u);  // two weights, two biases
  BOOST_TEST(!all_zero(one));
  chain.forward(second, test_inputs(2, 3), test_targets(2, 3));
  chain.backward(second);
  BOOST_TEST((chain.squared_norms() != one));
  chain.update({{0.1}, 1});
  BOOST_TEST(all_zero(chain.squared_norms()));
}

void interleaving_changes_nothing(const ExecutorFactory& create) {
  const auto run = [&](bool interleaved) {
    Chain chain(create, {{"", "c"}});
    const auto first = training(1, 0, 3, 0.5);
    const auto second = training(1, 1, 3, 0.5);
    chain.forward(first, test_inputs(1, 3), test_targets(1, 3));
    if (interleaved) chain.backward(first);
    chain.forward(second, test_inputs(2, 3), test_targets(2, 3));
    if (!interleaved) chain.backward(first);
    chain.backward(second);
    chain.update({{0.5}, 1});
    return chain.state();
  };
  BOOST_TEST(same_bytes(run(true), run(false)));
}

void absent_gradients_are_accepted(const ExecutorFactory& create) {
  ChainOptions options;
  options.with_loss = false;
  Chain chain(create, options);
  const auto micro_batch = training(1, 0, 3, 1);
  const auto before = chain.state();
  chain.forward(micro_batch, test_inputs(1, 3), {});
  chain.backward(micro_batch, absent_value());
  BOOST_TEST(all_zero(chain.squared_norms()));
  chain.update({{0.5}, 1});
  BOOST_TEST(same_bytes(before, chain.state()));
}

void input_gradients_exist_where_they_are_wanted(const ExecutorFactory& create) {
  ChainOptions options;
  options.with_loss = false;
  for (const bool wanted : {false, true}) {
    Chain chain(create, options);
    auto& executor = chain.stage(0);
    const auto micro_batch = training(1, 0, 3, 1);
    const Value input{test_inputs(1, 3), wanted, false};
    const auto forward = value_of(await<ForwardOutcome>([&](auto done) {
      executor.forward({micro_batch, {input}}, std::move(done));
    }));
    BOOST_REQUIRE(forward.outputs.size() == 1u);
    BOOST_TEST(forward.outputs[0].requires_grad);
    const Value gradient{ones(forward.outputs[0].tensor.shape), false, false};
    const auto backward = value_of(await<BackwardOutcome>([&](auto done) {
      executor.backward({micro_batch, {gradient}}, std::move(done));
    }));
    BOOST_REQUIRE(backward.input_gradients.size() == 1u);
    BOOST_TEST(backward.input_gradients[0].absent == !wanted);
    if (wanted) BOOST_TEST((backward.input_gradients[0].tensor.shape == input.tensor.shape));
  }
}

void only_a_prediction_may_lack_targets(const ExecutorFactory& create) {
  auto micro_batch = training(1, 0, 3, 1);
  micro_batch.kind = v1::Key::KIND_INFER;
  BOOST_TEST(!Chain(create, {}).forward(micro_batch, test_inputs(1, 3), {}).has_loss);
  for (const auto kind : {v1::Key::KIND_TRAIN, v1::Key::KIND_EVAL}) {
    Chain chain(create, {});
    micro_batch.kind = kind;
    BOOST_CHECK_THROW(chain.forward(micro_batch, test_inputs(1, 3), {}), std::runtime_error);
  }
}

void the_fingerprint_names_libraries_and_device(const ExecutorFactory& create) {
  Chain chain(create, {});
  const auto fingerprint = chain.stage(0).fingerprint();
  BOOST_TEST(!fingerprint.libraries().empty());
  BOOST_TEST(!fingerprint.device().empty());
  BOOST_TEST(fingerprint.threads() == 1u);
}

void state_is_exported_in_order(const ExecutorFactory& create) {
  Chain chain(create, {});
  const auto tensors = value_of(await<std::vector<NamedTensor>>(
      [&](auto done) { chain.stage(0).export_state(std::move(done)); }));
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  const std::vector<std::string> expected{"a.weight", "a.bias", "c.weight", "c.bias"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  for (const auto& tensor : tensors) {
    BOOST_TEST(tensor.tensor.validate().ok());
    BOOST_TEST(tensor.tensor.dtype == v1::DTYPE_FLOAT64);
    BOOST_TEST(!tensor.buffer);
  }
}

void imported_state_is_used(const ExecutorFactory& create) {
  Chain trained(create, {});
  trained.train_step(1);
  const auto state = trained.state();

  ChainOptions options;
  options.seed = 99;
  Chain other(create, options);
  BOOST_TEST(!same_bytes(state, other.state()));
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state) tensors.push_back({name, tensor, false});
  check_ok(await<void>(
      [&](auto done) { other.stage(0).import_state(std::move(tensors), std::move(done)); }));
  BOOST_TEST(same_bytes(state, other.state()));

  auto micro_batch = training(1, 0, 3, 1);
  micro_batch.kind = v1::Key::KIND_EVAL;
  const auto expected = trained.forward(micro_batch, test_inputs(5, 3), test_targets(5, 3));
  const auto got = other.forward(micro_batch, test_inputs(5, 3), test_targets(5, 3));
  BOOST_TEST(got.loss.loss == expected.loss.loss);
}

void unfit_state_is_refused_by_name(const ExecutorFactory& create) {
  const auto import = [&](const std::string& name, Shape shape) {
    Chain chain(create, {});
    return await<void>([&](auto done) {
      chain.stage(0).import_state({{name, ones(std::move(shape)), false}}, std::move(done));
    });
  };
  const auto unknown = import("z.weight", {5, 6});
  BOOST_REQUIRE(!unknown.ok());
  BOOST_TEST(unknown.error().to_string().find("z.weight") != std::string::npos);
  const auto unfit = import("a.weight", {6, 5});
  BOOST_REQUIRE(!unfit.ok());
  BOOST_TEST(unfit.error().to_string().find("a.weight") != std::string::npos);
  BOOST_TEST(import("a.weight", {5, 6}).ok());
}

void imported_types_are_converted_or_refused_by_name(const ExecutorFactory& create) {
  ChainOptions options;
  options.precision = v1::PRECISION_FLOAT32;
  Chain chain(create, options);
  const auto import = [&](NamedTensor tensor) {
    return await<void>(
        [&](auto done) { chain.stage(0).import_state({std::move(tensor)}, std::move(done)); });
  };
  const auto bias = [](v1::DType dtype, const void* numbers, std::size_t bytes) {
    return NamedTensor{"c.bias", HostTensor{dtype, {4}, Blob::copy_of(numbers, bytes)}, false};
  };
  const auto expect = [&](const std::vector<float>& expected) {
    const auto found = chain.state().at("c.bias");
    BOOST_TEST(found.dtype == v1::DTYPE_FLOAT32);
    BOOST_TEST(std::vector<float>(found.as<float>(), found.as<float>() + 4) == expected,
               boost::test_tools::per_element());
  };
  const double doubles[] = {0.5, -1, 2, 0.1};
  check_ok(import(bias(v1::DTYPE_FLOAT64, doubles, sizeof doubles)));
  expect({0.5F, -1, 2, 0.1F});
  const std::uint16_t halves[] = {0x3C00, 0xC000, 0x3800, 0};
  check_ok(import(bias(v1::DTYPE_FLOAT16, halves, sizeof halves)));
  expect({1, -2, 0.5F, 0});

  const std::int64_t integers[] = {1, 2, 3, 4};
  const auto refused = import(bias(v1::DTYPE_INT64, integers, sizeof integers));
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == ErrorCode::bad_input));
  for (const char* part : {"c.bias", "int64", "float32"})
    BOOST_TEST(refused.error().to_string().find(part) != std::string::npos,
               refused.error().to_string());
}

void discarding_forgets_a_step(const ExecutorFactory& create) {
  Chain chain(create, {});
  Chain fresh(create, {});
  const auto micro_batch = training(1, 0, 3, 1);
  chain.forward(micro_batch, test_inputs(7, 3), test_targets(7, 3));
  chain.backward(micro_batch);
  chain.forward(micro_batch, test_inputs(8, 3), test_targets(8, 3));
  chain.stage(0).discard_all();
  const auto backward = await<BackwardOutcome>([&](auto done) {
    chain.stage(0).backward({micro_batch, {}}, std::move(done));
  });
  BOOST_TEST(!backward.ok());
  chain.stage(0).discard_all();
  chain.train_step(1);
  fresh.train_step(1);
  BOOST_TEST(same_bytes(chain.state(), fresh.state()));
}

void frozen_weights_do_not_change(const ExecutorFactory& create) {
  ChainOptions options;
  options.frozen = true;
  Chain chain(create, options);
  const auto before = chain.state();
  chain.train_step(1);
  BOOST_TEST(same_bytes(before, chain.state()));
}

void initial_state_does_not_depend_on_the_cut(const ExecutorFactory& create) {
  Chain whole(create, {});
  Chain parts(create, {{"", "b", "c", "e"}});
  BOOST_TEST(same_bytes(whole.state(), parts.state()));
  ChainOptions other_seed;
  other_seed.seed = 12;
  BOOST_TEST(!same_bytes(whole.state(), Chain(create, other_seed).state()));
}

void trained_state_does_not_depend_on_the_cut(const ExecutorFactory& create) {
  const auto train = [&](std::vector<std::string> first_layers) {
    Chain chain(create, {std::move(first_layers)});
    for (std::uint64_t step = 1; step <= 3; ++step) chain.train_step(step);
    return chain.state();
  };
  const auto whole = train({""});
  BOOST_TEST(!same_bytes(whole, Chain(create, {}).state()));
  BOOST_TEST(same_bytes(whole, train({"", "c"})));
  BOOST_TEST(same_bytes(whole, train({"", "loss"})));
  BOOST_TEST(same_bytes(whole, train({"", "b", "c", "e"})));
  BOOST_TEST(same_bytes(whole, train({"", "b", "c", "d", "e", "loss"})));
}

void tied_weights_do_not_depend_on_the_cut(const ExecutorFactory& create) {
  const auto train = [&](std::vector<std::string> first_layers) {
    ChainOptions options;
    options.first_layers = std::move(first_layers);
    options.tied = true;
    Chain chain(create, options);
    for (std::uint64_t step = 1; step <= 3; ++step) chain.train_step(step);
    // An evaluation shows what the copies are; the state has the owner's values only.
    auto micro_batch = training(9, 0, 3, 1);
    micro_batch.kind = v1::Key::KIND_EVAL;
    const auto loss = chain.forward(micro_batch, test_inputs(9, 3), test_targets(9, 3)).loss.loss;
    return std::make_pair(chain.state(), loss);
  };
  const auto whole = train({""});
  BOOST_TEST(whole.first.count("c.weight") == 0u);
  for (const auto& cut :
       std::vector<std::vector<std::string>>{{"", "b"},
                                             {"", "d"},
                                             {"", "e"},
                                             {"", "c", "e"},
                                             {"", "b", "c", "d", "e", "f", "loss"}}) {
    const auto parts = train(cut);
    BOOST_TEST(same_bytes(whole.first, parts.first), "cut before " << cut[1]);
    BOOST_TEST(whole.second == parts.second);
  }
}

void tied_weights_count_once(const ExecutorFactory& create) {
  const auto norms = [&](std::vector<std::string> first_layers) {
    ChainOptions options;
    options.first_layers = std::move(first_layers);
    options.tied = true;
    Chain chain(create, options);
    const auto micro_batch = training(1, 0, 3, 1);
    chain.forward(micro_batch, test_inputs(1, 3), test_targets(1, 3));
    chain.backward(micro_batch);
    return chain.squared_norms();
  };
  const auto whole = norms({""});
  BOOST_REQUIRE(whole.size() == 8u);
  BOOST_TEST(whole[0] > 0);   // a.weight
  BOOST_TEST(whole[2] == 0);  // c.weight
  BOOST_TEST(whole[4] == 0);  // e.weight
  BOOST_TEST(norms({"", "c", "e"}) == whole, boost::test_tools::per_element());
}

void a_tied_gradient_accumulates_until_the_update(const ExecutorFactory& create) {
  const auto train = [&](bool summary_between) {
    ChainOptions options;
    options.first_layers = {"", "c"};
    options.tied = true;
    Chain chain(create, options);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto micro_batch = training(1, i, 3, 0.5);
      chain.forward(micro_batch, test_inputs(i, 3), test_targets(i, 3));
      chain.backward(micro_batch);
      if (summary_between) chain.squared_norms();
    }
    chain.update({{0.5}, 0.75});
    return chain.state();
  };
  BOOST_TEST(same_bytes(train(false), train(true)));
}

void a_skipped_update_changes_nothing(const ExecutorFactory& create) {
  ChainOptions options;
  options.first_layers = {"", "c"};
  options.tied = true;
  Chain chain(create, options);
  const auto before = chain.state();
  const auto micro_batch = training(1, 0, 3, 1);
  chain.forward(micro_batch, test_inputs(1, 3), test_targets(1, 3));
  chain.backward(micro_batch);
  chain.update({{0.5}, 1, true});
  BOOST_TEST(same_bytes(before, chain.state()));
  BOOST_TEST(all_zero(chain.squared_norms()));
  Chain fresh(create, options);
  chain.train_step(2);
  fresh.train_step(2);
  BOOST_TEST(same_bytes(chain.state(), fresh.state()));
}

void recomputing_changes_no_bit_and_keeps_less(const ExecutorFactory& create) {
  const auto run = [&](std::vector<std::string> patterns, std::vector<std::string> first_layers) {
    ChainOptions options;
    options.first_layers = std::move(first_layers);
    for (const auto& pattern : patterns) options.rules.recompute.emplace_back().set_layers(pattern);
    Chain chain(create, options);
    const auto micro_batch = training(1, 0, 3, 1);
    const auto live = chain.forward(micro_batch, test_inputs(1, 3), test_targets(1, 3)).live_bytes;
    chain.backward(micro_batch);
    chain.update({{0.5}, 1});
    for (std::uint64_t step = 2; step <= 3; ++step) chain.train_step(step);
    return std::make_pair(chain.state(), live);
  };
  const auto kept = run({}, {""});
  for (const auto& patterns :
       std::vector<std::vector<std::string>>{{"a"}, {"b", "c"}, {"a", "c", "e"}, {"*"}})
    for (const auto& cut :
         std::vector<std::vector<std::string>>{{""}, {"", "c"}, {"", "b", "c", "d", "e"}}) {
      const auto recomputed = run(patterns, cut);
      BOOST_TEST(same_bytes(kept.first, recomputed.first), patterns[0] << ", " << cut.size());
    }
  BOOST_TEST(run({"b", "c"}, {""}).second < kept.second);
  BOOST_TEST(run({"*"}, {""}).second < run({"b", "c"}, {""}).second);
}

void wire_types_apply_without_a_cut(const ExecutorFactory& create) {
  const auto train = [&](v1::Precision precision, v1::DType wire,
                         std::vector<std::string> first_layers) {
    ChainOptions options;
    options.first_layers = std::move(first_layers);
    options.precision = precision;
    if (wire != v1::DTYPE_UNSPECIFIED) {
      auto& rule = options.rules.wire.emplace_back();
      rule.set_layers("?");
      rule.set_dtype(wire);
    }
    Chain chain(create, options);
    for (std::uint64_t step = 1; step <= 2; ++step) chain.train_step(step);
    return chain.state();
  };
  for (const auto& [precision, wire] : {std::pair(v1::PRECISION_FLOAT32, v1::DTYPE_BFLOAT16),
                                        std::pair(v1::PRECISION_FLOAT64, v1::DTYPE_BFLOAT16),
                                        std::pair(v1::PRECISION_FLOAT64, v1::DTYPE_FLOAT32)}) {
    const auto whole = train(precision, wire, {""});
    // Numbers of a fake executor fit into float32.
    if (wire == v1::DTYPE_BFLOAT16)
      BOOST_TEST(!same_bytes(whole, train(precision, v1::DTYPE_UNSPECIFIED, {""})));
    BOOST_TEST(same_bytes(whole, train(precision, wire, {"", "c"})));
    BOOST_TEST(same_bytes(whole, train(precision, wire, {"", "b", "c", "d", "e", "loss"})));
  }
}

void mixed_precision_does_not_depend_on_the_cut(const ExecutorFactory& create) {
  const auto train = [&](std::vector<std::string> first_layers) {
    ChainOptions options;
    options.first_layers = std::move(first_layers);
    options.precision = v1::PRECISION_BFLOAT16;
    Chain chain(create, options);
    for (std::uint64_t step = 1; step <= 3; ++step) chain.train_step(step);
    return chain.state();
  };
  const auto whole = train({""});
  for (const auto& [name, tensor] : whole) BOOST_TEST(tensor.dtype == v1::DTYPE_FLOAT32, name);
  BOOST_TEST(same_bytes(whole, train({"", "c"})));
  BOOST_TEST(same_bytes(whole, train({"", "b", "c", "d", "e", "loss"})));
}

void the_loss_scale_reaches_the_gradients(const ExecutorFactory& create) {
  const auto norms = [&](double loss_scale) {
    Chain chain(create, {});
    const auto micro_batch = training(1, 0, 3, 1);
    chain.forward(micro_batch, test_inputs(1, 3), test_targets(1, 3));
    BackwardTask task{micro_batch, {}, loss_scale};
    value_of(await<BackwardOutcome>(
        [&](auto done) { chain.stage(0).backward(std::move(task), std::move(done)); }));
    return chain.squared_norms();
  };
  BOOST_TEST((norms(1) != norms(8)));
}

}  // namespace troupe::mp::conformance
