#include "libtorch/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/var_mean.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "libtorch/norm_kernels.hpp"
#include "libtorch/tensors.hpp"

namespace troupe::mp::libtorch {
namespace {

constexpr double momentum = 0.1;
constexpr double epsilon = 1e-5;

const float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

/// Calls `work` for ranges of the channels that cover all of them. Ranges begin at cache lines.
template <class Work>
void for_channels(const at::Tensor& x, const Work& work) {
  const std::int64_t channels = x.size(1);
  const std::int64_t rows = x.numel() / channels;
  constexpr std::int64_t line = 16;
  // Less than this is not worth another thread.
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / (rows * line));
  at::parallel_for(0, (channels + line - 1) / line, grain,
                   [&](std::int64_t begin, std::int64_t end) {
                     work(NormRows{rows, channels, begin * line, std::min(end * line, channels)});
                   });
}

/// One number for each channel.
at::Tensor by_channel(const at::Tensor& x) {
  return at::empty({x.size(1)}, at::TensorOptions().dtype(at::kFloat));
}

/// What the backward needs of the forward, both by channel.
struct Statistics {
  at::Tensor mean;
  at::Tensor factor;  ///< scale / standard deviation
  at::Tensor inverse_deviation;
};

/// What becomes of a training batch's statistics.
struct Update {
  bool now = false;                        ///< running statistics follow them
  DeferredStatistics* deferred = nullptr;  ///< or they are gathered here
};

/// y = factor * x + (shift - factor * mean) + addend, then ReLU. The statistics are those of `x`
/// in training, else the running ones.
at::Tensor compute(const at::Tensor& x, const at::Tensor& addend, const at::Tensor& scale,
                   const at::Tensor& shift, const RunningStatistics& running, bool relu,
                   bool training, Update update, Statistics& statistics) {
  statistics = {by_channel(x), by_channel(x), by_channel(x)};
  const at::Tensor offset = by_channel(x);
  const at::Tensor y = at::empty_like(x, x.options(), channels_last);
  std::vector<double> sums(training ? 2 * static_cast<std::size_t>(x.size(1)) : 0);
  double* sum = sums.data();
  double* squares = sum + x.size(1);
  float* mean_of = statistics.mean.data_ptr<float>();
  float* factor_of = statistics.factor.data_ptr<float>();
  float* inverse_of = statistics.inverse_deviation.data_ptr<float>();
  float* offset_of = offset.data_ptr<float>();
  float* running_mean_of = running.mean.data_ptr<float>();
  float* running_var_of = running.variance.data_ptr<float>();
  Moments moments;
  if (update.deferred != nullptr) {
    moments.count = static_cast<double>(x.numel() / x.size(1));
    moments.mean.resize(static_cast<std::size_t>(x.size(1)));
    moments.squared_deviations.resize(moments.mean.size());
  }
  for_channels(x, [&](const NormRows& rows) {
    if (training) norm_sums(rows, floats(x), sum, squares);
    const auto count = static_cast<double>(rows.rows);
    for (std::int64_t c = rows.begin; c < rows.end; ++c) {
      double mean = running_mean_of[c];
      double variance = running_var_of[c];
      if (training) {
        mean = sum[c] / count;
        // Of floats squared in double the difference is exact enough, but may round below 0.
        variance = std::max(squares[c] / count - mean * mean, 0.0);
        if (update.now) {
          const double unbiased = variance * (count / (count - 1));
          running_mean_of[c] =
              static_cast<float>(momentum * mean + (1 - momentum) * running_mean_of[c]);
          running_var_of[c] =
              static_cast<float>(momentum * unbiased + (1 - momentum) * running_var_of[c]);
        }
        if (update.deferred != nullptr) {
          moments.mean[static_cast<std::size_t>(c)] = mean;
          moments.squared_deviations[static_cast<std::size_t>(c)] = variance * count;
        }
      }
      const double inverse = 1 / std::sqrt(variance + epsilon);
      mean_of[c] = static_cast<float>(mean);
      inverse_of[c] = static_cast<float>(inverse);
      factor_of[c] = static_cast<float>(inverse * floats(scale)[c]);
      offset_of[c] = static_cast<float>(floats(shift)[c] - mean * inverse * floats(scale)[c]);
    }
    norm_apply(rows, floats(x), factor_of, offset_of, floats(addend), relu, y.data_ptr<float>());
  });
  if (update.deferred != nullptr) update.deferred->add(running, momentum, moments);
  return y;
}

/// The training pass as a node of autograd.
class Function : public torch::autograd::Function<Function> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, const c10::optional<at::Tensor>& addend,
                            const RunningStatistics& running, bool relu, Update update) {
    Statistics statistics;
    const at::Tensor y = compute(x, addend.value_or(at::Tensor()), scale, shift, running, relu,
                                 /*training=*/true, update, statistics);
    context->save_for_backward({x, relu ? y : at::Tensor(), statistics.mean, statistics.factor,
                                statistics.inverse_deviation});
    context->saved_data["adds"] = addend.has_value() && addend->defined();
    return y;
  }

  static Variables backward(Context* context, const Variables& output_gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& y = saved[1];
    const at::Tensor& mean = saved[2];
    const at::Tensor& factor = saved[3];
    const at::Tensor& inverse_deviation = saved[4];
    const at::Tensor dy = output_gradients[0].contiguous(channels_last);
    // Only tensors are counted, so without an addend there is no fourth.
    const bool wants_addend =
        context->saved_data.at("adds").toBool() && context->needs_input_grad(3);
    // Without ReLU the gradient passes the addition unchanged.
    at::Tensor dz;
    if (wants_addend) dz = y.defined() ? at::empty_like(x, x.options(), channels_last) : dy;
    float* write_dz = wants_addend && y.defined() ? dz.data_ptr<float>() : nullptr;
    const at::Tensor dx = at::empty_like(x, x.options(), channels_last);
    const at::Tensor scale_gradient = by_channel(x);
    const at::Tensor shift_gradient = by_channel(x);
    const auto channels = static_cast<std::size_t>(x.size(1));
    std::vector<double> sums(2 * channels);
    std::vector<float> means(2 * channels);
    double* sum = sums.data();
    double* dot = sum + channels;
    float* mean_sum = means.data();
    float* mean_dot = mean_sum + channels;
    for_channels(x, [&](const NormRows& rows) {
      norm_gradient_sums(rows, floats(dy), floats(y), floats(x), floats(mean), write_dz, sum, dot);
      const auto count = static_cast<double>(rows.rows);
      for (std::int64_t c = rows.begin; c < rows.end; ++c) {
        const double inverse = floats(inverse_deviation)[c];
        scale_gradient.data_ptr<float>()[c] = static_cast<float>(dot[c] * inverse);
        shift_gradient.data_ptr<float>()[c] = static_cast<float>(sum[c]);
        mean_sum[c] = static_cast<float>(sum[c] / count);
        mean_dot[c] = static_cast<float>(dot[c] * inverse * inverse / count);
      }
      // What was masked before need not be masked again.
      const bool masked = write_dz != nullptr;
      norm_input_gradient(rows, masked ? write_dz : floats(dy), masked ? nullptr : floats(y),
                          floats(x), floats(mean), floats(factor), mean_sum, mean_dot,
                          dx.data_ptr<float>());
    });
    return {dx, scale_gradient, shift_gradient, dz, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

bool suits(const at::Tensor& x, const at::Tensor& addend) {
  const auto fits = [](const at::Tensor& t) {
    return t.is_cpu() && t.scalar_type() == at::kFloat && t.dim() == 4 && t.numel() != 0 &&
           t.is_contiguous(channels_last);
  };
  return fits(x) && (!addend.defined() || (fits(addend) && addend.sizes() == x.sizes()));
}

/// Of any tensor whose second dimension is that of the channels.
Moments moments_of(const at::Tensor& x) {
  const c10::NoGradGuard no_grad;
  std::vector<std::int64_t> others;
  for (std::int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) others.push_back(d);
  const auto [variance, mean] = at::var_mean(x.detach().to(at::kDouble), others,
                                             /*unbiased=*/false);
  Moments moments;
  moments.count = static_cast<double>(x.numel() / x.size(1));
  const auto numbers = [](const at::Tensor& tensor) {
    const at::Tensor host = tensor.cpu().contiguous();
    const auto* begin = host.data_ptr<double>();
    return std::vector<double>(begin, begin + host.numel());
  };
  moments.mean = numbers(mean);
  moments.squared_deviations = numbers(variance * moments.count);
  return moments;
}

}  // namespace

BatchNorm::BatchNorm(at::Tensor scale, at::Tensor shift, at::Tensor running_mean,
                     at::Tensor running_var, at::Tensor batches)
    : scale_(std::move(scale)),
      shift_(std::move(shift)),
      running_{std::move(running_mean), std::move(running_var), std::move(batches)} {}

at::Tensor BatchNorm::forward(const at::Tensor& x, const at::Tensor& addend, Activation activation,
                              const ForwardContext& context) const {
  const bool training = context.training;
  // Its variance would be 0/0, and the running one not a number ever after.
  TORCH_CHECK(!training || x.numel() > x.size(1),
              "batch norm needs more than one value per channel when training, got ", x.sizes());
  const bool relu = activation == Activation::relu;
  const bool differentiable =
      c10::GradMode::is_enabled() &&
      (x.requires_grad() || scale_.requires_grad() || (addend.defined() && addend.requires_grad()));
  Update update;
  if (training && !context.recomputing) {
    update.now = context.deferred == nullptr;
    update.deferred = context.deferred;
  }
  if (update.now) {
    const c10::NoGradGuard no_grad;
    running_.batches.add_(1);
  }
  const bool fits = suits(x, addend) && scale_.scalar_type() == at::kFloat &&
                    scale_.numel() == x.size(1) && scale_.is_contiguous();
  if (fits && training && differentiable)
    return Function::apply(x, scale_, shift_, c10::optional<at::Tensor>(addend), running_, relu,
                           update);
  if (fits && !differentiable) {
    Statistics statistics;
    return compute(x, addend, scale_, shift_, running_, relu, training, update, statistics);
  }
  if (update.deferred != nullptr) update.deferred->add(running_, momentum, moments_of(x));
  // LibTorch changes the running statistics that it is given when training.
  const bool give = !training || update.now;
  at::Tensor y = at::batch_norm(x, scale_, shift_, give ? running_.mean : at::Tensor(),
                                give ? running_.variance : at::Tensor(), training, momentum,
                                epsilon, /*cudnn_enabled=*/false);
  // Batch norm's backward does not need its result, nor addition's: both may be overwritten.
  if (addend.defined()) y += addend;
  return relu ? y.relu_() : y;
}

}  // namespace troupe::mp::libtorch
