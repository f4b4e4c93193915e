#include "job_text.hpp"

#include <algorithm>

namespace troupe::test {

#ifdef TEST_LIBTORCH
const std::string real_device = "cpu";
#else
const std::string real_device = "fake";
#endif

std::string JobText::text() const {
  std::string job = "name: \"test\" " + job_fields + "\n";
  std::vector<std::string> nodes;
  for (const StageText& stage : stages) {
    if (std::find(nodes.begin(), nodes.end(), stage.node) != nodes.end()) continue;
    job += "nodes { name: \"" + stage.node + "\"";
    if (nodes.size() < addresses.size() && !addresses[nodes.size()].empty())
      job += " address: \"" + addresses[nodes.size()] + "\"";
    job += " }\n";
    nodes.push_back(stage.node);
  }
  job += "plugin { [type.googleapis.com/troupe.model_parallel.v1." + type + "] {\n";
  job += "model { " + model + " }\n";
  for (const StageText& stage : stages) {
    job += "stages { node: \"" + stage.node + "\" device: \"" + device + "\" threads: 1";
    if (!stage.first_layer.empty()) job += " first_layer: \"" + stage.first_layer + "\"";
    job += " " + stage.more + " }\n";
  }
  for (const std::string& part : {loss, optimizer, data, batches, length, more})
    if (!part.empty()) job += part + "\n";
  return job + "} }\n";
}

std::string small_resnet(int in_channels) {
  return "resnet { depth: 18 num_classes: 10 stem: STEM_SMALL width_multiplier: 0.125 "
         "in_channels: " +
         std::to_string(in_channels) + " }";
}

std::string perceptron(const std::vector<int>& features) {
  std::string layers = "layers { layers { name: \"flatten\" kind: \"flatten\" }\n";
  for (std::size_t i = 0; i + 1 < features.size(); ++i) {
    const std::string number = std::to_string(i);
    if (i != 0) layers += "layers { name: \"relu" + number + "\" kind: \"relu\" }\n";
    layers += "layers { name: \"linear" + number + "\" kind: \"linear\" " +
              "attributes { key: \"in_features\" value: " + std::to_string(features[i]) + " } " +
              "attributes { key: \"out_features\" value: " + std::to_string(features[i + 1]) +
              " } }\n";
  }
  return layers + "}";
}

}  // namespace troupe::test
