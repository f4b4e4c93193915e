#include "libtorch/convolution.hpp"

#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "libtorch/onednn.hpp"
#include "libtorch/tensors.hpp"

namespace troupe::mp::libtorch {

/// The convolution itself, shared with the graphs of micro-batches under way.
class Convolution::State : public torch::CustomClassHolder {
 public:
  State(at::Tensor weight, Pair stride, Pair padding, std::int64_t groups)
      : weight_(std::move(weight)), stride_(stride), padding_(padding), groups_(groups) {
    TORCH_CHECK(weight_.dim() == 4 && weight_.is_contiguous(),
                "the weight of a convolution must have 4 dimensions and be row-major");
    TORCH_CHECK(groups > 0 && weight_.size(0) % groups == 0, weight_.size(0),
                " output channels cannot be parted into ", groups, " groups");
    geometry_ = {weight_.size(0), weight_.size(1) * groups,
                 weight_.size(2), weight_.size(3),
                 stride[0],       stride[1],
                 padding[0],      padding[1],
                 groups};
    if (weight_.is_cpu() && weight_.scalar_type() == at::kFloat)
      kernels_ = make_onednn_convolution(geometry_);
  }

  const at::Tensor& weight() const { return weight_; }

  /// Whether the kernels can take `input`. What at::conv2d would refuse is left to it.
  bool accelerates(const at::Tensor& input) const {
    return kernels_ && input.is_cpu() && input.scalar_type() == at::kFloat && input.dim() == 4 &&
           input.numel() != 0 && input.size(1) == geometry_.in_channels &&
           geometry_.out_height(input.size(2)) > 0 && geometry_.out_width(input.size(3)) > 0;
  }

  at::Tensor by_libtorch(const at::Tensor& input) const {
    return at::conv2d(input, weight_, {}, stride_, padding_, /*dilation=*/1, groups_);
  }

  /// Arguments of these are channels-last.
  at::Tensor forward(const at::Tensor& input) {
    notice_weight();
    const at::Tensor output =
        empty({input.size(0), geometry_.out_channels, geometry_.out_height(input.size(2)),
               geometry_.out_width(input.size(3))});
    kernels_->forward(shape_of(input.sizes()), data(input), data(weight_), data(output));
    return output;
  }

  at::Tensor backward_input(at::IntArrayRef input_sizes, const at::Tensor& output_gradient) {
    notice_weight();
    const at::Tensor gradient = empty(input_sizes);
    kernels_->backward_input(shape_of(input_sizes), data(output_gradient), data(weight_),
                             data(gradient));
    return gradient;
  }

  void backward_weight(const at::Tensor& input, const at::Tensor& output_gradient) {
    kernels_->backward_weight(shape_of(input.sizes()), data(input), data(output_gradient));
  }

  at::Tensor take_gradient() {
    if (!kernels_ || !kernels_->has_gradient()) return {};
    const at::Tensor gradient = at::empty(weight_.sizes(), weight_.options());
    kernels_->take_gradient(data(gradient));
    return gradient;
  }

  void discard_gradient() {
    if (kernels_) kernels_->discard_gradient();
  }

 private:
  static float* data(const at::Tensor& tensor) { return tensor.data_ptr<float>(); }

  static at::Tensor empty(at::IntArrayRef sizes) {
    return at::empty(sizes, at::TensorOptions().dtype(at::kFloat), at::MemoryFormat::ChannelsLast);
  }

  static ConvolutionInput shape_of(at::IntArrayRef input_sizes) {
    return {input_sizes[0], input_sizes[2], input_sizes[3], at::get_num_threads()};
  }

  void notice_weight() {
    if (weight_._version() == packed_version_) return;
    packed_version_ = weight_._version();
    kernels_->weight_changed();
  }

  at::Tensor weight_;
  Pair stride_;
  Pair padding_;
  std::int64_t groups_;
  ConvolutionGeometry geometry_;
  std::unique_ptr<OneDnnConvolution> kernels_;  ///< null: always at::conv2d
  std::int64_t packed_version_ = 0;             ///< of the weight, when the kernels packed it
};

/// The convolution as a node of autograd. The weight is an argument only so that it counts as one
/// that wants a gradient.
class Convolution::Function : public torch::autograd::Function<Convolution::Function> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const c10::intrusive_ptr<State>& state,
                            const at::Tensor& input, const at::Tensor& weight) {
    const at::Tensor x = input.contiguous(channels_last);
    // A frozen weight needs no input, which is then released early.
    if (weight.requires_grad()) context->save_for_backward({x});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["state"] = at::IValue::make_capsule(state);
    context->saved_data["version"] = static_cast<std::int64_t>(weight._version());
    return state->forward(x);
  }

  static Variables backward(Context* context, const Variables& output_gradients) {
    const auto state =
        c10::static_intrusive_pointer_cast<State>(context->saved_data["state"].toCapsule());
    TORCH_CHECK(context->saved_data["version"].toInt() == state->weight()._version(),
                "the weight of a convolution changed between forward and backward");
    const at::Tensor gradient = output_gradients[0].contiguous(channels_last);
    if (context->needs_input_grad(1))
      state->backward_weight(context->get_saved_variables()[0], gradient);
    at::Tensor input_gradient;
    if (context->needs_input_grad(0)) {
      const auto sizes = context->saved_data["sizes"].toIntVector();
      input_gradient = state->backward_input(sizes, gradient);
    }
    return {at::Tensor(), input_gradient, at::Tensor()};
  }
};

Convolution::Convolution(at::Tensor weight, Pair stride, Pair padding, std::int64_t groups)
    : state_(c10::make_intrusive<State>(std::move(weight), stride, padding, groups)) {}

Convolution::~Convolution() = default;
Convolution::Convolution(Convolution&&) noexcept = default;
Convolution& Convolution::operator=(Convolution&&) noexcept = default;

at::Tensor Convolution::forward(const at::Tensor& input) const {
  if (!state_->accelerates(input)) return state_->by_libtorch(input);
  const bool differentiable =
      c10::GradMode::is_enabled() && (input.requires_grad() || weight().requires_grad());
  if (!differentiable) return state_->forward(input.contiguous(channels_last));
  return Function::apply(state_, input, weight());
}

at::Tensor Convolution::take_gradient() { return state_->take_gradient(); }

void Convolution::discard_gradient() { state_->discard_gradient(); }

const at::Tensor& Convolution::weight() const { return state_->weight(); }

}  // namespace troupe::mp::libtorch
