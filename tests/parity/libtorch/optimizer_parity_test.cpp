// Optimizers and learning-rate schedules against PyTorch's of the same name, and LAMB against its
// paper's formula.
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <google/protobuf/text_format.h>
#include <boost/test/unit_test.hpp>

#include "core/optimizer_config.hpp"
#include "libtorch/optimizers/optimizer.hpp"
#include "libtorch/tensors.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

const std::map<std::string, std::string> optimizers = {
    {"sgd", "sgd { lr: 0.1 momentum: 0.9 dampening: 0.1 weight_decay: 0.01 }"},
    {"sgd_nesterov", "sgd { lr: 0.1 momentum: 0.8 nesterov: true }"},
    {"adam", "adam {}"},
    {"adam_options",
     "adam { lr: 0.01 beta1: 0.8 beta2: 0.95 epsilon: 1e-5 weight_decay: 0.1 amsgrad: true }"},
    {"adamw", "adamw {}"},
    {"adamw_options", "adamw { lr: 0.02 weight_decay: 0.3 amsgrad: true }"},
    {"rmsprop", "rmsprop {}"},
    {"rmsprop_options",
     "rmsprop { lr: 0.003 alpha: 0.9 epsilon: 1e-6 weight_decay: 0.05 momentum: 0.7 "
     "centered: true }"},
    {"groups",
     "adamw { lr: 0.01 } groups { names: '*.bias' weight_decay: 0 } "
     "groups { names: 'b.*' names: 'a.bias' lr: 0.05 }"},
    {"lamb", "lamb { lr: 0.02 weight_decay: 0.01 }"},
};

const std::map<std::string, std::string> schedules = {
    {"step", "step { every: 7 gamma: 0.3 }"},
    {"multi_step", "multi_step { milestones: [3, 10, 11, 30] }"},
    {"cosine", "cosine { min_lr: 0.01 }"},
    {"one_cycle", "one_cycle {}"},
    {"one_cycle_linear",
     "one_cycle { rise: 0.25 initial_divisor: 10 final_divisor: 100 linear: true }"},
    {"warm_step", "step { every: 5 } warmup { length: 6 }"},
    {"warm_cosine", "cosine {} warmup { length: 8 start_factor: 0.1 }"},
    {"epochs", "step { every: 2 gamma: 0.5 } unit: UNIT_EPOCHS"},
    {"cosine_epochs", "cosine {} unit: UNIT_EPOCHS"},
};

template <class Message>
Message parse(const std::string& text) {
  Message message;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

std::string as_it_is(const std::string& path) { return path; }

/// What optimizers.py wrote.
class PytorchWeights {
 public:
  PytorchWeights() {
    const std::string path = (directory_.path() / "optimizers.safetensors").string();
    run_python("optimizers.py", {path});
    file_.emplace(must(SafetensorsFile::open(path)));
  }

  at::Tensor tensor(const std::string& name) const {
    return libtorch::to_tensor(must(file_->tensor(name)));
  }

 private:
  troupe::test::TemporaryDirectory directory_;
  std::optional<SafetensorsFile> file_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizer_parity)

BOOST_AUTO_TEST_CASE(weights_agree_with_pytorch_over_20_steps) {
  const PytorchWeights reference;
  for (const auto& [name, text] : optimizers) {
    BOOST_TEST_CONTEXT(name) {
      std::vector<libtorch::StateEntry> parameters;
      for (const char* parameter : {"a.weight", "a.bias", "b.weight"}) {
        auto& entry = parameters.emplace_back();
        entry.name = parameter;
        entry.tensor = reference.tensor("initial/" + entry.name).clone();
      }
      const auto config = parse<v1::Optimizer>(text);
      const auto rates = must(learning_rates(config, RunLength(), as_it_is));
      std::vector<double> lr;
      for (const auto& rate : rates) lr.push_back(rate.at(1));
      const auto optimizer = libtorch::Optimizer::make(config, parameters);
      for (int step = 0; step < 20; ++step) {
        for (auto& parameter : parameters)
          parameter.gradient =
              reference.tensor("gradient/" + std::to_string(step) + "/" + parameter.name).clone();
        optimizer->step(parameters, lr, 1);
      }
      for (const auto& parameter : parameters) {
        const at::Tensor expected = reference.tensor(name + "/" + parameter.name);
        const double difference = (parameter.tensor - expected).norm().item<double>();
        const double moved =
            (reference.tensor("initial/" + parameter.name) - expected).norm().item<double>();
        BOOST_TEST(difference <= 1e-6 * expected.norm().item<double>(), parameter.name);
        BOOST_TEST(moved > 1e-3, parameter.name);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(learning_rates_agree_with_pytorch) {
  const auto lines = run_python("learning_rates.py", {});
  BOOST_TEST(lines.size() == schedules.size());
  for (const auto& line : lines) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    BOOST_TEST_CONTEXT(name) {
      const auto schedule = parse<v1::LearningRateSchedule>(schedules.at(name));
      const auto rate = must(LearningRate::make(0.4, schedule, {40, 5}, as_it_is));
      std::uint64_t step = 0;
      for (double expected = 0; words >> expected;)
        BOOST_TEST(std::abs(rate.at(++step) - expected) <= 1e-12, "step " << step);
      BOOST_TEST(step == 40u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
