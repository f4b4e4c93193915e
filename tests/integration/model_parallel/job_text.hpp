#pragma once

#include <string>
#include <vector>

namespace troupe::test {

/// "cpu", or "fake" in a build without LibTorch.
extern const std::string real_device;

/// One stage of a job file.
struct StageText {
  std::string node;
  std::string first_layer;  ///< empty: the first
  std::string more;         ///< further fields
};

/// A training job, to be written into a file: what tests vary.
struct JobText {
  std::vector<StageText> stages = {{"a", "", ""}};
  std::vector<std::string> addresses;  ///< of the nodes in the order of their first stage
  std::string device = real_device;
  std::string type = "TrainJob";
  std::string model;
  std::string loss = "loss { cross_entropy {} } ";
  std::string optimizer = "optimizer { sgd { lr: 0.05 } }";
  std::string data = "data { synthetic { shape: [3, 16, 16] classes: 10 } }";
  std::string batches = "batch_size: 7 micro_batch_size: 2";
  std::string length = "steps: 3";
  std::string more;                    ///< further fields of the plugin's message
  std::string job_fields = "seed: 5";  ///< further fields of the job

  std::string text() const;
};

/// A ResNet-18 that is small enough to be trained in moments.
std::string small_resnet(int in_channels = 3);

/// Linear layers "linear0", "linear1", ... of these sizes with "relu0", ... between them, after a
/// layer "flatten".
std::string perceptron(const std::vector<int>& features);

}  // namespace troupe::test
