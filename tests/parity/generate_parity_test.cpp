// Texts that `troupe run` generates, over one to three stages, against plain PyTorch.
#include <sstream>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"
#include "parity/python.hpp"

namespace troupe::test {
namespace {

const std::string count = "20";
const std::string prompt = "the licence";

/// Weights of a small GPT-2, and what PyTorch writes with them.
class Reference {
 public:
  Reference() {
    for (const auto& line : mp::test::run_python(
             "generate.py", {directory_.path().string(), count, prompt, "longer than the context"}))
      texts_.push_back(text_of(line));
  }

  std::string weights() const { return (directory_.path() / "weights.safetensors").string(); }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  static std::string text_of(const std::string& line) {
    std::istringstream numbers(line);
    std::string text;
    for (int token = 0; numbers >> token;) text += static_cast<char>(token);
    return text;
  }

  TemporaryDirectory directory_;
  std::vector<std::string> texts_;
};

const Reference& reference() {
  static const Reference reference;
  return reference;
}

/// A job with stages that begin with these layers, the first apart.
std::string job_text(const std::string& more, const std::vector<std::string>& cuts = {}) {
  std::string nodes = "nodes { name: \"n0\" }\n";
  std::string stages = "stages { node: \"n0\" threads: 1 }\n";
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::string name = "\"n" + std::to_string(i + 1) + "\"";
    nodes += "nodes { name: " + name + " }\n";
    stages += "stages { node: " + name + " threads: 1 first_layer: \"" + cuts[i] + "\" }\n";
  }
  return "name: \"test\" seed: 3\n" + nodes +
         "plugin { [type.googleapis.com/troupe.model_parallel.v1.GenerateJob] {\n"
         "model { gpt2 { vocab_size: 256 context: 12 layers: 2 heads: 2 width: 16 } }\n" +
         stages + "init_from: \"" + reference().weights() +
         "\" tokenizer { bytes {} } precision: PRECISION_FLOAT64 " + more + " } }\n";
}

/// The text that a job leaves.
std::string generated(const std::string& more, const std::vector<std::string>& cuts = {}) {
  Cluster cluster;
  const auto outcome =
      outcome_of(cluster.run(cluster.files().write("job.textproto", job_text(more, cuts))));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  return read_text(cluster.out() + "/generated.txt");
}

std::string sampled(const std::string& more, const std::vector<std::string>& cuts = {}) {
  return generated("text: \"" + prompt + "\" tokens: " + count + " " + more, cuts);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_most_probable_tokens_are_pytorchs_wherever_the_model_is_cut) {
  BOOST_REQUIRE_EQUAL(reference().texts().size(), 2u);
  BOOST_TEST(sampled("temperature: 0") == reference().texts()[0]);
  BOOST_TEST(sampled("temperature: 0", {"transformer.h.1", "lm_head"}) == reference().texts()[0]);
  BOOST_TEST(generated("text: \"longer than the context\" temperature: 0 tokens: " + count,
                       {"transformer.h.0"}) == reference().texts()[1]);
}

BOOST_AUTO_TEST_CASE(a_text_is_drawn_from_the_seed_and_not_from_the_cut) {
  const auto whole = sampled("temperature: 1.5");
  BOOST_TEST(whole.rfind(prompt, 0) == 0u);
  BOOST_TEST(whole.size() == prompt.size() + 20);
  BOOST_TEST(whole != reference().texts()[0]);
  BOOST_TEST(sampled("temperature: 1.5", {"transformer.h.1"}) == whole);
  BOOST_TEST(sampled("temperature: 1.5 top_k: 1") == reference().texts()[0]);
}

BOOST_AUTO_TEST_CASE(a_prompt_may_stand_in_a_file_and_the_result_is_an_object) {
  const TemporaryDirectory files;
  const std::string file = files.write("prompt.txt", prompt);
  Cluster cluster;
  const auto result = result_of(cluster.run(
      cluster.files().write(
          "job.textproto",
          job_text("file: \"" + file + "\" temperature: 0 tokens: " + count + " output: \"text\"")),
      {"--json"}));
  BOOST_TEST(result.at("prompt_tokens") == prompt.size());
  BOOST_TEST(result.at("tokens") == 20);
  BOOST_TEST(read_text(cluster.out() + "/text") == reference().texts()[0]);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_continued_is_refused_at_its_field) {
  const auto refused = [](const std::string& more, const std::vector<std::string>& parts,
                          const std::vector<std::string>& arguments = {}) {
    Cluster cluster;
    const auto file = cluster.files().write("job.textproto", job_text(more));
    const auto outcome = outcome_of(cluster.run(file, arguments));
    BOOST_TEST(outcome.code == 2, outcome.error);
    BOOST_TEST(outcome.error.rfind(file + ":", 0) == 0u, outcome.error);
    for (const auto& part : parts)
      BOOST_TEST(outcome.error.find(part) != std::string::npos, part << " in " << outcome.error);
    BOOST_TEST(!std::filesystem::exists(cluster.out()));
  };
  refused("text: \"\" tokens: 3", {"an empty prompt"});
  refused("text: \"a\"", {"tokens"});
  refused("tokens: 3", {"prompt"});
  refused("text: \"a\" tokens: 3 context: 13", {"a context of 13 tokens", "12 positions"});
  refused("text: \"a\" tokens: 3 temperature: -1", {"temperature"});
  refused("text: \"a\" tokens: 3 output: \"run.json\"", {"run.json"});
  refused("text: \"a\" tokens: 3", {"98 tokens", "\"transformer.wte\"", "vectors for 97"},
          {"--set", "plugin.model.gpt2.vocab_size=97"});
}

}  // namespace troupe::test
