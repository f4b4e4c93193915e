#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "libtorch/batch_norm.hpp"
#include "libtorch/convolution.hpp"
#include "troupe/model_parallel/layer.hpp"

/// What several kinds of layers are made of.

namespace troupe::mp::libtorch {

/// The single input that most layers have.
const at::Tensor& only(const std::vector<at::Tensor>& inputs);

/// An attribute that is a whole number, at least `least`.
std::int64_t whole_attribute(const LayerSetup& setup, const std::string& name,
                             std::int64_t fallback, std::int64_t least);

/// The layout in which convolutions of this type and device are fastest. A network whose layers all
/// declare it converts nothing on the way.
at::MemoryFormat layout_of_convolutions(const at::Tensor& weight);

/// Batch norm of the tensors "<prefix>.weight", ... of the layer; an empty prefix: "weight", ...
BatchNorm make_batch_norm(const LayerSetup& setup, const std::string& prefix);

/// A linear map that is stored as torch.nn.Linear does, [outputs, inputs], with a bias.
class LinearMap {
 public:
  LinearMap(at::Tensor weight, at::Tensor bias)
      : weight_(std::move(weight)), bias_(std::move(bias)) {}
  /// "<prefix>.weight" and "<prefix>.bias".
  LinearMap(const LayerSetup& setup, const std::string& prefix);

  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Layer norm over the last dimension (Ba et al., 2016).
class LayerNorm {
 public:
  /// "<prefix>.weight" and "<prefix>.bias"; an empty prefix: "weight" and "bias".
  LayerNorm(const LayerSetup& setup, const std::string& prefix, double epsilon);

  at::Tensor operator()(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  double epsilon_;
};

/// A convolution and what is added to its channels, if anything.
class BiasedConvolution {
 public:
  BiasedConvolution(Convolution convolution, at::Tensor bias)
      : convolution_(std::move(convolution)), bias_(std::move(bias)) {}

  at::Tensor operator()(const at::Tensor& x) const;

  at::MemoryFormat layout() const { return layout_of_convolutions(convolution_.weight()); }

  std::vector<Layer::OwnGradient> take_gradients();
  void discard_gradients() { convolution_.discard_gradient(); }

 private:
  Convolution convolution_;
  at::Tensor bias_;
};

/// Adds what the convolution accumulated itself, if anything.
void take_gradient(Convolution& convolution, std::vector<Layer::OwnGradient>& gradients);

}  // namespace troupe::mp::libtorch
