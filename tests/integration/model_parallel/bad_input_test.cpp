// What is wrong with a job is said in one line that names the place, before anything is written.

#include <filesystem>
#include <fstream>

#include "integration/cluster.hpp"
#include "integration/taken_port.hpp"
#include "job_text.hpp"

namespace troupe::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JobText good_job() {
  JobText job;
  job.device = "fake";
  job.model = perceptron({12, 16, 10});
  job.data = "data { synthetic { shape: [3, 2, 2] classes: 10 } }";
  job.stages = {{"a", "", ""}, {"b", "linear1", ""}};
  return job;
}

/// A job that is wrong, and what becomes of it.
struct Refused {
  explicit Refused(const std::string& text, const std::vector<std::string>& more = {}) {
    file = cluster.files().write("job.textproto", text);
    outcome = outcome_of(cluster.run(file, more));
  }
  explicit Refused(const JobText& job, const std::vector<std::string>& more = {})
      : Refused(job.text(), more) {}

  /// One line on stderr with all these parts.
  void expect(int code, const std::vector<std::string>& parts) const {
    BOOST_TEST(outcome.code == code, outcome.error);
    BOOST_TEST(outcome.error.find('\n') == outcome.error.size() - 1, outcome.error);
    BOOST_TEST(contains(outcome.error, "; "), "how to mend it: " << outcome.error);
    for (const auto& part : parts)
      BOOST_TEST(contains(outcome.error, part), "no '" << part << "' in " << outcome.error);
  }

  /// The same at a position of the job's file, and no output directory.
  void expect_at_position(const std::vector<std::string>& parts) const {
    expect(2, parts);
    BOOST_TEST(outcome.error.rfind(file + ":", 0) == 0u, outcome.error);
    const auto colon = outcome.error.find(": ", file.size());
    const std::string position = outcome.error.substr(file.size(), colon - file.size());
    BOOST_TEST(position.find_first_not_of(":0123456789") == std::string::npos, position);
    expect_nothing_written();
  }

  void expect_error_line(int code, const std::vector<std::string>& parts) const {
    expect(code, parts);
    BOOST_TEST(outcome.error.rfind("troupe: ", 0) == 0u, outcome.error);
  }

  void expect_nothing_written() const { BOOST_TEST(!std::filesystem::exists(cluster.out())); }

  Cluster cluster;
  std::string file;
  Outcome outcome;
};

std::string replaced(std::string text, const std::string& old, const std::string& with) {
  return text.replace(text.find(old), old.size(), with);
}

/// The first `size` bytes of a file, written beside it.
std::string truncated(const TemporaryDirectory& files, const std::string& path, std::size_t size) {
  return files.write("truncated", read_text(path).substr(0, size));
}

/// The header of an IDX file, and one byte fewer than it promises.
std::string short_idx() {
  std::string bytes{0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 2};
  return bytes + std::string(39, 'x');
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_input)

BOOST_AUTO_TEST_CASE(precision_and_rules_on_layers_must_fit_the_job) {
  const auto refuse = [](const std::string& device, const std::string& more,
                         const std::string& what) {
    auto job = good_job();
    job.device = device;
    job.more = more;
    Refused(job).expect_at_position({what});
  };
  refuse("cpu", "precision: PRECISION_FLOAT16", "float16 on the device \"cpu\"");
  refuse("fake", "recompute { layers: \"x*\" }", "no layer is called \"x*\"");
  refuse("fake", "wire { layers: \"*\" dtype: DTYPE_INT8 }", "DTYPE_INT8 is no wire type");
  refuse("fake", "loss_scaling { initial_scale: 8 }", "needs no scaling of the loss");
  refuse("fake", "precision: PRECISION_FLOAT16 loss_scaling { backoff_factor: 2 }",
         "backoff_factor");
}

BOOST_AUTO_TEST_CASE(the_good_job_is_good) {
  Cluster cluster;
  const auto outcome =
      outcome_of(cluster.run(cluster.files().write("job.textproto", good_job().text())));
  BOOST_TEST(outcome.code == 0, outcome.error);
}

BOOST_AUTO_TEST_CASE(a_misspelt_field) {
  Refused(replaced(good_job().text(), "micro_batch_size", "microbatch_size"))
      .expect_at_position({"microbatch_size", "micro_batch_size"});
}

BOOST_AUTO_TEST_CASE(a_wrong_type_url) {
  Refused(replaced(good_job().text(), "TrainJob", "TrainingJob"))
      .expect_at_position({"troupe.model_parallel.v1.TrainingJob"});
  Refused(replaced(good_job().text(), "troupe.model_parallel.v1", "troupe.nowhere.v1"))
      .expect_at_position({"troupe.nowhere.v1.TrainJob"});
}

BOOST_AUTO_TEST_CASE(a_stage_that_begins_with_no_layer) {
  JobText job = good_job();
  job.stages[1].first_layer = "linear7";
  Refused(job).expect_at_position({"linear7", "linear1"});
}

BOOST_AUTO_TEST_CASE(a_stage_on_an_undeclared_node) {
  Refused(replaced(good_job().text(), "stages { node: \"b\"", "stages { node: \"c\""))
      .expect_at_position({"node \"c\"", "\"a\", \"b\""});
}

BOOST_AUTO_TEST_CASE(a_micro_batch_larger_than_its_batch) {
  JobText job = good_job();
  job.batches = "batch_size: 4 micro_batch_size: 5";
  Refused(job).expect_at_position({"micro_batch_size 5", "batch_size 4"});
}

BOOST_AUTO_TEST_CASE(numbers_that_a_loss_cannot_have) {
  const auto refused = [](const std::string& loss, const std::vector<std::string>& parts) {
    JobText job = good_job();
    job.loss = "loss { " + loss + " }";
    Refused(job).expect_at_position(parts);
  };
  refused("cross_entropy { label_smoothing: 1.5 }", {"label_smoothing", "1.5"});
  refused("cross_entropy { label_smoothing: -0.1 }", {"label_smoothing", "-0.1"});
  refused("cross_entropy { label_smoothing: nan }", {"label_smoothing", "nan"});
  refused("cross_entropy { ignore_index: 3000000000 }", {"3000000000"});
  refused("cross_entropy { ignore_index: 0.5 }", {"0.5"});
  refused("huber { delta: 0 }", {"delta"});
  refused("bce_with_logits { pos_weight: [1, -2] }", {"pos_weight[1]", "-2"});
}

BOOST_AUTO_TEST_CASE(targets_of_another_kind_than_the_loss_wants) {
  for (const char* loss : {"mse", "l1", "huber", "bce_with_logits"}) {
    JobText job = good_job();
    job.loss = std::string("loss { ") + loss + " {} }";
    Refused refused(job);
    refused.expect(2, {refused.file + ":", "cannot use class indices", "one_hot_classes"});
    refused.expect_nothing_written();
  }
}

BOOST_AUTO_TEST_CASE(data_that_the_model_has_no_room_for) {
  JobText job = good_job();
  job.data = "data { synthetic { shape: [3, 2, 2] classes: 11 } }";
  Refused(job).expect_at_position({"the data has 11 classes", "\"linear1\" tells 10 apart"});
  job.data =
      "data { text { paths: \"/usr/share/common-licenses/GPL-2\" tokenizer { bytes {} } "
      "sequence_length: 8 } }";
  job.model = "gpt2 { vocab_size: 50 context: 8 layers: 1 heads: 1 width: 4 }";
  job.stages[1].first_layer = "lm_head";
  Refused(job).expect_at_position({"the data has 256 tokens", "vectors for 50"});
}

BOOST_AUTO_TEST_CASE(frequencies_of_what_is_no_text) {
  JobText job = good_job();
  job.data = "data { synthetic { shape: [3, 2, 2] classes: 10 samples: 20 } }";
  job.more = "evaluation { " + job.data + " compare_with_frequencies: true }";
  Refused(job).expect_at_position({"this data does not count its targets", "only text does"});
}

BOOST_AUTO_TEST_CASE(accumulation_and_batch_norm_that_do_not_exist) {
  JobText job = good_job();
  job.more = "accumulate_batches: 2000000";
  Refused(job).expect_at_position({"accumulate_batches", "2000000"});
  job.more = "batch_norm: BATCH_NORM_SOMETIMES";
  Refused(job).expect_at_position({"BATCH_NORM_SOMETIMES"});
}

BOOST_AUTO_TEST_CASE(overrides) {
  Refused wrong_path(good_job(), {"--set", "plugin.microbatch_size=2"});
  wrong_path.expect_error_line(2, {"--set", "microbatch_size", "micro_batch_size"});
  wrong_path.expect_nothing_written();
  Refused wrong_value(good_job(), {"--set", "plugin.micro_batch_size=two"});
  wrong_value.expect_error_line(2, {"--set", "micro_batch_size", "two"});
  wrong_value.expect_nothing_written();
  Refused out_of_range(good_job(), {"--set", "plugin.micro_batch_size=0"});
  out_of_range.expect_error_line(2, {"--set", "micro_batch_size"});
  out_of_range.expect_nothing_written();
  Refused nonsense(good_job(), {"--set", "plugin.micro_batch_size"});
  nonsense.expect_error_line(2, {"--set"});
  nonsense.expect_nothing_written();
  Refused inconsistent(good_job(), {"--set", "plugin.micro_batch_size=100"});
  inconsistent.expect_error_line(2, {"--set plugin.micro_batch_size", "batch_size 7"});
  inconsistent.expect_nothing_written();
}

BOOST_AUTO_TEST_CASE(truncated_image_files) {
  TemporaryDirectory files;
  JobText job = good_job();
  const std::string plain = files.write("images.idx", short_idx());
  job.data = "data { idx { images: \"" + plain + "\" labels: \"" + plain + "\" } }";
  Refused refused(job);
  refused.expect_error_line(2, {plain, "truncated", "40 bytes", "39 there"});
  refused.expect_nothing_written();
  const std::string directory = "/usr/share/datasets/fashion-mnist/";
  const std::string labels = directory + "train-labels-idx1-ubyte.gz";
  const std::string half = truncated(files, directory + "t10k-images-idx3-ubyte.gz", 100000);
  job.data = "data { idx { images: \"" + half + "\" labels: \"" + labels + "\" } }";
  Refused compressed(job);
  compressed.expect_error_line(2, {half, "truncated"});
  compressed.expect_nothing_written();
}

BOOST_AUTO_TEST_CASE(truncated_tensor_files) {
  Cluster cluster;
  JobText job = good_job();
  const auto trained = outcome_of(cluster.run(cluster.files().write("job.textproto", job.text())));
  BOOST_REQUIRE_EQUAL(trained.code, 0);
  const std::string weights = cluster.out() + "/weights.safetensors";
  const std::size_t size = read_text(weights).size();
  for (const std::size_t left : {std::size_t{3}, std::size_t{100}, size - 1}) {
    const std::string broken = truncated(cluster.files(), weights, left);
    JobText from_weights = good_job();
    from_weights.more = "init_from: \"" + broken + "\"";
    Refused start(from_weights);
    start.expect_error_line(2, {broken, "truncated"});
    start.expect_nothing_written();
    JobText from_data = good_job();
    from_data.data = "data { tensors { path: \"" + broken + "\" } }";
    Refused data(from_data);
    data.expect_error_line(2, {broken, "truncated"});
    data.expect_nothing_written();
  }
}

BOOST_AUTO_TEST_CASE(a_field_that_the_data_does_not_have) {
  auto job = good_job();
  const TemporaryDirectory files;
  const auto text = files.write("text", "some text to learn from");
  job.data = "data { text { paths: '" + text + "' tokenizer { bytes {} } sequence_length: 4 } }";
  job.model =
      "layers { layers { name: 'flatten' kind: 'flatten' reads { field: 'mask' } } "
      "layers { name: 'linear1' kind: 'flatten' } }";
  Refused(job).expect_at_position({"\"mask\"", "it has \"inputs\", \"targets\""});
}

BOOST_AUTO_TEST_CASE(data_that_contradicts_itself) {
  auto job = good_job();
  const TemporaryDirectory files;
  const auto text = files.write("text", "some text to learn from");
  job.data = "data { text { paths: '" + text +
             "' tokenizer { bytes {} }\n part: PART_TRAIN sequence_length: 4 } }";
  Refused(job).expect_at_position({":2: text.part: no part of the text is held out"});
  job.data = "data { image_folder { directory: '/nonexistent' size: 8 } }";
  Refused(job).expect_at_position({"image_folder.directory: no directory /nonexistent"});
}

BOOST_AUTO_TEST_CASE(damaged_data_files) {
  auto job = good_job();
  const TemporaryDirectory files;
  const auto batch = files.write("data_batch_1.bin", std::string(3072, 'x'));
  job.data =
      "data { cifar { directory: '" + files.path().string() + "' version: VERSION_CIFAR_10 } }";
  const Refused short_record(job);
  short_record.expect_error_line(2, {batch, "3072 bytes are no whole number"});
  short_record.expect_nothing_written();

  const auto vocabulary = files.write("vocab.json", "{\"a\": ");
  const auto text = files.write("text", "some text to learn from");
  job.data = "data { text { paths: '" + text + "' sequence_length: 4 tokenizer { gpt2 { vocab: '" +
             vocabulary + "' merges: '/nonexistent' } } } }";
  const Refused no_json(job);
  no_json.expect_error_line(2, {vocabulary, "no JSON from byte"});
  no_json.expect_nothing_written();
}

BOOST_AUTO_TEST_CASE(weights_of_another_model) {
  Cluster cluster;
  JobText job = good_job();
  BOOST_REQUIRE_EQUAL(
      outcome_of(cluster.run(cluster.files().write("job.textproto", job.text()))).code, 0);
  job.model = perceptron({12, 9, 10});
  job.more = "init_from: \"" + cluster.out() + "/weights.safetensors\"";
  Refused refused(job);
  refused.expect_error_line(2, {"weights.safetensors", "linear0"});
  refused.expect_nothing_written();
}

BOOST_AUTO_TEST_CASE(a_missing_file) {
  JobText job = good_job();
  job.more = "init_from: \"/nowhere/w.safetensors\"";
  Refused refused(job);
  refused.expect_error_line(2, {"/nowhere/w.safetensors", "No such file"});
  refused.expect_nothing_written();
}

BOOST_AUTO_TEST_CASE(an_unreachable_address) {
  TakenPort port;
  const std::string address = "127.0.0.1:" + std::to_string(port.port());
  port.release();
  JobText job = good_job();
  job.addresses = {"", address};
  Refused refused(job);
  refused.expect_error_line(3, {"node b", address, "listens there"});
  refused.expect_nothing_written();
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there) {
  for (const char* device : {"cuda:7", "gpu"}) {
    JobText job = good_job();
    job.device = device;
    Refused refused(job);
#ifdef TEST_LIBTORCH
    refused.expect_error_line(2, {device, "this LibTorch has: cpu"});
#else
    refused.expect_error_line(2, {device, "fake"});
#endif
    refused.expect_nothing_written();
  }
}

#ifdef TEST_LIBTORCH

BOOST_AUTO_TEST_CASE(a_layer_of_an_unknown_kind) {
  JobText job = good_job();
  job.device = "cpu";
  job.model = replaced(job.model, "\"relu\"", "\"rellu\"");
  Refused refused(job);
  refused.expect_error_line(2, {"relu1", "rellu", "relu,"});
  refused.expect_nothing_written();
}

#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
