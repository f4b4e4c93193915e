#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "data/data_source.hpp"
#include "data/safetensors.hpp"
#include "unit/model_parallel/dataset_tools.hpp"
#include "unit/model_parallel/temporary_directory.hpp"

namespace mp = troupe::mp;
using namespace troupe::mp::test;
using troupe::test::TemporaryDirectory;

namespace {

std::string idx(std::initializer_list<unsigned char> shape, const std::string& content) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  for (const auto d : shape) bytes += std::string(3, '\0') + static_cast<char>(d);
  return bytes + content;
}

const std::string one_hot = "synthetic { shape: [2, 3] one_hot_classes: 7 } ";
const std::string classes = "synthetic { shape: [2, 3] classes: 7 samples: 10 } ";

}  // namespace

BOOST_AUTO_TEST_SUITE(datasets)

BOOST_AUTO_TEST_CASE(synthetic_batches_depend_on_their_arguments_only) {
  auto a = open(one_hot, options_for(Loss::mse));
  auto b = open(one_hot, options_for(Loss::mse));
  const auto late = batch(*a, 0, 5, 4);
  batch(*b, 0, 1, 4);
  BOOST_TEST(same_bytes(late.fields.at("inputs"), batch(*b, 0, 5, 4).fields.at("inputs")));
  BOOST_TEST(same_bytes(late.fields.at("inputs"), batch(*a, 0, 5, 4).fields.at("inputs")));
  BOOST_TEST(!same_bytes(late.fields.at("inputs"), batch(*a, 0, 6, 4).fields.at("inputs")));
  auto c = open(one_hot, options_for(Loss::mse, mp::v1::DTYPE_FLOAT32, 43));
  BOOST_TEST(!same_bytes(late.fields.at("inputs"), batch(*c, 0, 5, 4).fields.at("inputs")));
  BOOST_TEST(a->samples() == 0u);
  BOOST_TEST(late.first_sample == 20u);
  BOOST_TEST((late.fields.at("inputs").shape == mp::Shape{4, 2, 3}));
}

BOOST_AUTO_TEST_CASE(a_synthetic_sample_does_not_depend_on_the_batch_size) {
  auto source = open(one_hot, options_for(Loss::none));
  const auto eight = batch(*source, 0, 0, 8).fields.at("inputs");
  const auto four = batch(*source, 0, 1, 4).fields.at("inputs");
  BOOST_TEST(same_bytes(eight.rows(4, 8), four));
}

BOOST_AUTO_TEST_CASE(synthetic_one_hot_targets_are_fixed_for_the_run) {
  auto source = open(one_hot, options_for(Loss::mse));
  const auto first = batch(*source, 0, 0, 8).fields.at("targets");
  BOOST_TEST((first.shape == mp::Shape{8, 7}));
  BOOST_TEST(same_bytes(first, batch(*source, 0, 9, 8).fields.at("targets")));
  std::set<int> hot;
  for (int row = 0; row < 8; ++row) {
    float sum = 0;
    for (int i = 0; i < 7; ++i) {
      sum += first.as<float>()[row * 7 + i];
      if (first.as<float>()[row * 7 + i] == 1.0f) hot.insert(i);
    }
    BOOST_TEST(sum == 1.0f);
  }
  BOOST_TEST(hot.size() > 1u);
}

BOOST_AUTO_TEST_CASE(synthetic_class_indices_are_int64_and_belong_to_the_sample) {
  auto source = open(classes, options_for(Loss::cross_entropy));
  const auto all = batch(*source, 0, 0, 10).fields.at("targets");
  BOOST_TEST((all.dtype == mp::v1::DTYPE_INT64));
  BOOST_TEST((all.shape == mp::Shape{10}));
  for (int i = 0; i < 10; ++i) BOOST_TEST((all.as<std::int64_t>()[i] >= 0));
  for (int i = 0; i < 10; ++i) BOOST_TEST((all.as<std::int64_t>()[i] < 7));
  BOOST_TEST(same_bytes(all.rows(6, 9), batch(*source, 4, 2, 3).fields.at("targets")));
  BOOST_TEST(batch(*source, 0, 3, 3).samples == 1u);
  BOOST_TEST(!source->batch(0, 4, 3).ok());
}

BOOST_AUTO_TEST_CASE(precision_decides_the_type_of_synthetic_fields) {
  auto narrow = open(one_hot, options_for(Loss::mse));
  auto wide = open(one_hot, options_for(Loss::mse, mp::v1::DTYPE_FLOAT64));
  const auto f = batch(*narrow, 0, 0, 4);
  const auto d = batch(*wide, 0, 0, 4);
  for (int i = 0; i < 24; ++i)
    BOOST_TEST(f.fields.at("inputs").as<float>()[i] ==
               static_cast<float>(d.fields.at("inputs").as<double>()[i]));
  for (int i = 0; i < 28; ++i)
    BOOST_TEST(f.fields.at("targets").as<float>()[i] == d.fields.at("targets").as<double>()[i]);
}

BOOST_AUTO_TEST_CASE(synthetic_configs_are_checked) {
  expect_error(one_hot, options_for(Loss::cross_entropy), "data.synthetic.one_hot_classes",
               "cross-entropy");
  expect_error(classes, options_for(Loss::mse), "data.synthetic.classes", "mean squared error");
  expect_error("synthetic { one_hot_classes: 7 }", options_for(Loss::mse), "data.synthetic.shape",
               "no shape");
  expect_error("synthetic { shape: [3, 0] classes: 7 }", options_for(Loss::none),
               "data.synthetic.shape", "below 1");
  expect_error("synthetic { shape: 3 }", options_for(Loss::mse), "data.synthetic", "no targets");
  expect_error("", options_for(Loss::none), "data", "no kind");
  auto huge = open("synthetic { shape: [1048576, 1048576] }", options_for(Loss::none));
  const auto result = huge->batch(0, 0, 1 << 20);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().what.find("too large") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(tensors_come_in_file_order_with_a_smaller_last_batch) {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "x.safetensors").string();
  mp::TensorMap tensors;
  std::vector<float> inputs(10);
  for (int i = 0; i < 10; ++i) inputs[i] = i;
  tensors["inputs"] = make<float>(mp::v1::DTYPE_FLOAT32, {5, 2}, inputs);
  tensors["targets"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {5}, {9, 8, 7, 6, 5});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  auto source = open("tensors { path: '" + path + "' }", options_for(Loss::cross_entropy));
  BOOST_TEST(source->samples() == 5u);
  const std::vector<std::string> fields{"inputs", "targets"};
  BOOST_TEST(source->fields() == fields, boost::test_tools::per_element());
  const auto first = batch(*source, 0, 0, 2);
  BOOST_TEST(first.fields.at("inputs").as<float>()[3] == 3.0f);
  const auto last = batch(*source, 7, 2, 2);
  BOOST_TEST(last.samples == 1u);
  BOOST_TEST(last.first_sample == 4u);
  BOOST_TEST(last.fields.at("inputs").as<float>()[1] == 9.0f);
  BOOST_TEST(last.fields.at("targets").as<std::int64_t>()[0] == 5);
  BOOST_TEST(!source->batch(0, 3, 2).ok());
  BOOST_TEST(!source->batch(0, 1ull << 63, 2).ok());

  auto wide = open("tensors { path: '" + path + "' }",
                   options_for(Loss::cross_entropy, mp::v1::DTYPE_FLOAT64));
  BOOST_TEST(batch(*wide, 0, 1, 2).fields.at("inputs").as<double>()[0] == 4.0);
}

BOOST_AUTO_TEST_CASE(shuffling_visits_every_sample_once_in_an_order_of_seed_and_epoch) {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "x.safetensors").string();
  mp::TensorMap tensors;
  std::vector<std::int64_t> numbers(100);
  for (int i = 0; i < 100; ++i) numbers[i] = i;
  tensors["inputs"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {100, 1}, numbers);
  tensors["targets"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {100}, numbers);
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  const auto order = [&](std::uint64_t seed, std::uint64_t epoch) {
    auto source = open("tensors { path: '" + path + "' } shuffle: true",
                       options_for(Loss::cross_entropy, mp::v1::DTYPE_FLOAT32, seed));
    std::vector<std::int64_t> seen;
    for (int i = 0; i < 4; ++i) {
      const auto part = batch(*source, epoch, i, 30);
      const auto* inputs = part.fields.at("inputs").as<std::int64_t>();
      const auto* targets = part.fields.at("targets").as<std::int64_t>();
      for (std::uint32_t row = 0; row < part.samples; ++row) {
        BOOST_TEST(inputs[row] == targets[row]);
        seen.push_back(inputs[row]);
      }
    }
    return seen;
  };
  const auto a = order(1, 0);
  BOOST_TEST((a == order(1, 0)));
  BOOST_TEST((a != order(1, 1)));
  BOOST_TEST((a != order(2, 0)));
  BOOST_TEST((a != numbers));
  auto sorted = a;
  std::sort(sorted.begin(), sorted.end());
  BOOST_TEST((sorted == numbers));
}

BOOST_AUTO_TEST_CASE(half_precision_and_narrow_integers_are_widened) {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "x.safetensors").string();
  mp::TensorMap tensors;
  tensors["bf16"] = make<std::uint16_t>(mp::v1::DTYPE_BFLOAT16, {2}, {0x3FC0, 0xC000});
  tensors["f16"] =
      make<std::uint16_t>(mp::v1::DTYPE_FLOAT16, {6}, {0x3E00, 0xC000, 0x0001, 0x7BFF, 0x7C00, 0});
  tensors["i8"] = make<std::int8_t>(mp::v1::DTYPE_INT8, {2}, {-3, 4});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  const auto read = [&](const std::string& inputs, std::uint32_t n) {
    auto source = open("tensors { path: '" + path + "' inputs: '" + inputs + "' targets: 'i8' }",
                       options_for(n == 2 ? Loss::cross_entropy : Loss::none));
    return batch(*source, 0, 0, n);
  };
  const auto two = read("bf16", 2);
  BOOST_TEST(two.fields.at("inputs").as<float>()[0] == 1.5f);
  BOOST_TEST(two.fields.at("inputs").as<float>()[1] == -2.0f);
  BOOST_TEST(two.fields.at("targets").as<std::int64_t>()[0] == -3);
  const auto six = read("f16", 6).fields.at("inputs");
  BOOST_TEST(six.as<float>()[0] == 1.5f);
  BOOST_TEST(six.as<float>()[1] == -2.0f);
  BOOST_TEST(six.as<float>()[2] == std::ldexp(1.0f, -24));
  BOOST_TEST(six.as<float>()[3] == 65504.0f);
  BOOST_TEST(std::isinf(six.as<float>()[4]));
  BOOST_TEST(six.as<float>()[5] == 0.0f);
}

BOOST_AUTO_TEST_CASE(tensor_files_are_checked_against_the_loss_and_each_other) {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "x.safetensors").string();
  mp::TensorMap tensors;
  tensors["inputs"] = make<float>(mp::v1::DTYPE_FLOAT32, {2}, {1, 2});
  tensors["scalar"] = make<float>(mp::v1::DTYPE_FLOAT32, {}, {1});
  tensors["none"] = make<float>(mp::v1::DTYPE_FLOAT32, {0, 2}, {});
  tensors["three"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {3}, {1, 2, 3});
  tensors["two"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {2}, {1, 2});
  tensors["shares"] = make<float>(mp::v1::DTYPE_FLOAT32, {2, 2}, {1, 0, 0.5, 0.5});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  const auto text = [&](const std::string& inputs, const std::string& targets) {
    return "tensors { path: '" + path + "' inputs: '" + inputs + "' targets: '" + targets + "' }";
  };
  const auto ce = options_for(Loss::cross_entropy);
  expect_error(text("x", "two"), ce, path, "no tensor 'x'");
  expect_error(text("inputs", ""), ce, path, "no tensor 'targets'");
  expect_error(text("scalar", "two"), ce, path, "holds no samples");
  expect_error(text("none", "two"), ce, path, "holds no samples");
  expect_error(text("inputs", "three"), ce, path, "must be equal");
  expect_error(text("inputs", "inputs"), ce, path, "class indices");
  BOOST_TEST(try_open(text("inputs", "shares"), ce).ok());
  expect_error(text("inputs", "two"), options_for(Loss::mse), path, "needs floats");
  expect_error("tensors { path: '/nonexistent' }", ce, "/nonexistent", "cannot open");
  BOOST_TEST(try_open(text("inputs", "absent"), options_for(Loss::none)).ok());
}

BOOST_AUTO_TEST_CASE(further_fields_of_a_tensor_file_have_any_name) {
  const TemporaryDirectory directory;
  const auto path = (directory.path() / "x.safetensors").string();
  mp::TensorMap tensors;
  tensors["inputs"] = make<float>(mp::v1::DTYPE_FLOAT32, {3}, {1, 2, 3});
  tensors["targets"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {3}, {1, 2, 3});
  tensors["m"] = make<std::uint8_t>(mp::v1::DTYPE_BOOL, {3, 2}, {1, 0, 1, 1, 0, 0});
  tensors["w"] = make<float>(mp::v1::DTYPE_FLOAT32, {3}, {0.5, 1, 2});
  tensors["positions"] = make<std::int32_t>(mp::v1::DTYPE_INT32, {3, 1}, {7, 8, 9});
  tensors["two"] = make<float>(mp::v1::DTYPE_FLOAT32, {2}, {1, 2});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  const auto text = [&](const std::string& fields) {
    return "tensors { path: '" + path + "' " + fields + " }";
  };
  const std::string three =
      "fields { key: 'mask' value: 'm' } fields { key: 'weights' value: 'w' } "
      "fields { key: 'positions' value: 'positions' }";
  const auto ce = options_for(Loss::cross_entropy, mp::v1::DTYPE_FLOAT64);
  auto source = open(text(three), ce);
  const std::vector<std::string> names{"inputs", "mask", "positions", "targets", "weights"};
  BOOST_TEST(source->fields() == names, boost::test_tools::per_element());
  const auto last = batch(*source, 0, 1, 2);
  BOOST_TEST(last.fields.size() == 5u);
  BOOST_TEST((last.fields.at("mask").dtype == mp::v1::DTYPE_BOOL));
  BOOST_TEST((last.fields.at("mask").shape == mp::Shape{1, 2}));
  BOOST_TEST(last.fields.at("weights").as<double>()[0] == 2.0);
  BOOST_TEST((last.fields.at("positions").dtype == mp::v1::DTYPE_INT32));
  BOOST_TEST(last.fields.at("positions").as<std::int32_t>()[0] == 9);
  // They go through the shuffle with their samples.
  auto shuffled = open(text(three) + " shuffle: true", ce);
  const auto all = batch(*shuffled, 3, 0, 3);
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(all.fields.at("positions").as<std::int32_t>()[i] ==
               6 + all.fields.at("targets").as<std::int64_t>()[i]);

  expect_error(text("fields { key: 'mask' value: 'x' }"), ce, path, "no tensor 'x'");
  expect_error(text("fields { key: 'mask' value: 'two' }"), ce, path, "must be equal");
  expect_error(text("fields { key: 'inputs' value: 'm' }"), ce, "data.tensors.fields",
               "further fields");
  expect_error(text("fields { key: '' value: 'm' }"), ce, "data.tensors.fields", "without a name");
}

BOOST_AUTO_TEST_CASE(idx_pixels_are_scaled_and_normalised) {
  const TemporaryDirectory directory;
  const auto images = directory.write("i", idx({2, 1, 2}, {'\0', '\xFF', '\x33', '\x66'})).string();
  const auto labels = directory.write("l", idx({2}, "\3\4")).string();
  const auto text = "idx { images: '" + images + "' labels: '" + labels + "' mean: 0.5 std: 0.25 }";
  for (const auto dtype : {mp::v1::DTYPE_FLOAT32, mp::v1::DTYPE_FLOAT64}) {
    auto source = open(text, options_for(Loss::cross_entropy, dtype));
    const auto all = batch(*source, 0, 0, 2);
    const auto& inputs = all.fields.at("inputs");
    BOOST_TEST((inputs.shape == mp::Shape{2, 1, 1, 2}));
    const std::vector<double> expected = {-2, 2, (0.2 - 0.5) / 0.25, (0.4 - 0.5) / 0.25};
    for (int i = 0; i < 4; ++i) {
      const double value =
          dtype == mp::v1::DTYPE_FLOAT64 ? inputs.as<double>()[i] : inputs.as<float>()[i];
      BOOST_TEST(std::abs(value - expected[i]) < 1e-6);
    }
    BOOST_TEST(all.fields.at("targets").as<std::int64_t>()[0] == 3);
    BOOST_TEST(all.fields.at("targets").as<std::int64_t>()[1] == 4);
  }
}

BOOST_AUTO_TEST_CASE(idx_configs_and_files_are_checked) {
  const TemporaryDirectory directory;
  const auto images = directory.write("i", idx({2, 1, 1}, "ab")).string();
  const auto labels = directory.write("l", idx({3}, "abc")).string();
  const auto both = "idx { images: '" + images + "' labels: '" + labels + "' }";
  const auto ce = options_for(Loss::cross_entropy);
  expect_error(both, ce, labels, "beside 2");
  expect_error(both, options_for(Loss::mse), "data.idx", "cross_entropy");
  expect_error("idx { images: '" + images + "' }", ce, "data.idx.labels", "no labels");
  expect_error("idx { images: '" + images + "' labels: '" + labels + "' std: nan }", ce,
               "data.idx.std", "not a positive number");
  expect_error("idx { images: '" + images + "' labels: '" + labels + "' mean: inf }", ce,
               "data.idx.mean", "not a number");
  expect_error("idx { images: '" + labels + "' labels: '" + labels + "' }", ce, labels,
               "is no images");
  const auto empty = directory.write("e", idx({0, 1, 1}, "")).string();
  expect_error("idx { images: '" + empty + "' }", options_for(Loss::none), empty, "no images");
  const auto cut = directory.write("c", idx({2, 2, 2}, "abc")).string();
  expect_error("idx { images: '" + cut + "' }", options_for(Loss::none), cut, "truncated");
  BOOST_TEST(try_open("idx { images: '" + images + "' }", options_for(Loss::none)).ok());
  // A limit also holds for the labels.
  BOOST_TEST(
      try_open("idx { images: '" + images + "' labels: '" + labels + "' limit: 2 }", ce).ok());
}

BOOST_AUTO_TEST_CASE(fashion_mnist_has_its_known_size_and_statistics) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    BOOST_TEST_MESSAGE("skipped: the package dataset-fashion-mnist is not installed");
    return;
  }
  auto source = open("fashion_mnist { split: SPLIT_TEST }", options_for(Loss::cross_entropy));
  BOOST_TEST(source->samples() == 10000u);
  const auto all = batch(*source, 0, 0, 10000);
  BOOST_TEST((all.fields.at("inputs").shape == mp::Shape{10000, 1, 28, 28}));
  double sum = 0, squares = 0;
  const auto* pixels = all.fields.at("inputs").as<float>();
  for (int i = 0; i < 7840000; ++i) {
    sum += pixels[i];
    squares += pixels[i] * static_cast<double>(pixels[i]);
  }
  BOOST_TEST(std::abs(sum / 7840000) < 0.02);
  BOOST_TEST(std::abs(squares / 7840000 - 1) < 0.02);
  std::vector<int> per_class(10);
  for (int i = 0; i < 10000; ++i) ++per_class.at(all.fields.at("targets").as<std::int64_t>()[i]);
  for (const int count : per_class) BOOST_TEST(count == 1000);
  auto few = open("fashion_mnist { limit: 100 }", options_for(Loss::cross_entropy));
  BOOST_TEST(few->samples() == 100u);
}

BOOST_AUTO_TEST_CASE(a_missing_fashion_mnist_says_what_to_install) {
  expect_error("fashion_mnist { directory: '/nonexistent' }", options_for(Loss::cross_entropy),
               "data.fashion_mnist.directory", "dataset-fashion-mnist");
  auto options = options_for(Loss::mse);
  options.where = "evaluation.data";
  expect_error("fashion_mnist {}", options, "evaluation.data.fashion_mnist", "cross_entropy");
}

BOOST_AUTO_TEST_SUITE_END()
