#pragma once

#include <cstdint>
#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"

/// What the catalog's models build their layers from.

namespace troupe::mp {

/// A layer with one output and nothing else.
v1::Layer make_layer(const std::string& name, const std::string& kind);

void set_attribute(v1::Layer& layer, const std::string& name, double value);

/// How a tensor begins; see Init.
v1::Init constant_init(double value);
v1::Init normal_init(double std);
v1::Init uniform_init(double bound);
v1::Init truncated_normal_init(double std, double bound);

/// Uniform within sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010).
v1::Init xavier_uniform_init(std::int64_t inputs, std::int64_t outputs);

/// The fan-out form for ReLU: standard deviation sqrt(2 / (outputs * kernel * kernel)) (He et al.,
/// "Delving Deep into Rectifiers", 2015).
v1::Init kaiming_normal_init(std::int64_t outputs, std::int64_t kernel);

void add_parameter(v1::Layer& layer, const std::string& name, const Shape& shape, v1::Init init);

/// Adds "<prefix>.weight" of shape [outputs, inputs_per_group, kernel, kernel].
void add_convolution(v1::Layer& layer, const std::string& prefix, std::int64_t outputs,
                     std::int64_t inputs_per_group, std::int64_t kernel, v1::Init init);

/// Adds a batch norm's two parameters and three buffers.
void add_batch_norm(v1::Layer& layer, const std::string& prefix, std::int64_t channels);

/// Adds "<prefix>.weight" of ones and "<prefix>.bias" of zeros.
void add_layer_norm(v1::Layer& layer, const std::string& prefix, std::int64_t features);

}  // namespace troupe::mp
