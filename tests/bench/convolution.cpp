// Time of all convolutions of ResNet-50, forward and backward, through Convolution and through
// at::conv2d in both memory formats. Usage: bench_convolution [image size [repetitions]].
// OMP_NUM_THREADS decides the number of threads. Counts processor time, so that other work on the
// machine disturbs less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "libtorch/convolution.hpp"

namespace {

using troupe::mp::libtorch::Convolution;

struct Shape {
  std::int64_t in;
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t size;  ///< height and width of the input

  Convolution::Pair strides() const { return {stride, stride}; }
  Convolution::Pair padding() const { return {(kernel - 1) / 2, (kernel - 1) / 2}; }
};

/// The 53 convolutions, in order.
std::vector<Shape> resnet50(std::int64_t image) {
  std::vector<Shape> shapes{{3, 64, 7, 2, image}};
  const std::vector<int> blocks{3, 4, 6, 3};
  std::int64_t size = image / 4;
  std::int64_t in = 64;
  for (std::size_t group = 0; group < blocks.size(); ++group) {
    const std::int64_t width = std::int64_t{64} << group;
    for (int block = 0; block < blocks[group]; ++block) {
      const std::int64_t stride = block == 0 && group > 0 ? 2 : 1;
      shapes.push_back({in, width, 1, 1, size});
      shapes.push_back({width, width, 3, stride, size});
      shapes.push_back({width, 4 * width, 1, 1, size / stride});
      if (block == 0) shapes.push_back({in, 4 * width, 1, stride, size});
      in = 4 * width;
      size /= stride;
    }
  }
  return shapes;
}

/// One convolution with what its passes need.
struct Layer {
  Shape shape;
  at::Tensor weight;
  at::Tensor input;
  at::Tensor gradient;
  Convolution convolution;
};

std::vector<Layer> layers_of(const std::vector<Shape>& shapes, std::int64_t batch,
                             at::MemoryFormat format) {
  std::vector<Layer> layers;
  for (const Shape& shape : shapes) {
    const auto weight = at::randn({shape.out, shape.in, shape.kernel, shape.kernel});
    weight.set_requires_grad(true);
    const auto input = at::randn({batch, shape.in, shape.size, shape.size}).contiguous(format);
    input.set_requires_grad(shape.in != 3);  // images want no gradient
    const std::int64_t out = (shape.size - 1) / shape.stride + 1;
    const auto gradient = at::randn({batch, shape.out, out, out}).contiguous(format);
    layers.push_back(
        {shape, weight, input, gradient, Convolution(weight, shape.strides(), shape.padding())});
  }
  return layers;
}

void backward(const Layer& layer, const at::Tensor& output) {
  std::vector<at::Tensor> wanted{layer.weight};
  if (layer.input.requires_grad()) wanted.push_back(layer.input);
  torch::autograd::grad({output}, wanted, {layer.gradient}, false, false, true);
}

void with_libtorch(std::vector<Layer>& layers) {
  for (const Layer& layer : layers)
    backward(layer, at::conv2d(layer.input, layer.weight, {}, layer.shape.strides(),
                               layer.shape.padding()));
}

void with_convolution(std::vector<Layer>& layers) {
  for (const Layer& layer : layers) backward(layer, layer.convolution.forward(layer.input));
}

/// What a step costs besides its micro-batches: weights are packed, gradients fetched.
void step_overhead(std::vector<Layer>& layers) {
  for (Layer& layer : layers) {
    layer.convolution.take_gradient();
    const c10::NoGradGuard no_grad;
    at::Tensor(layer.weight).mul_(1);  // counts as a change
  }
}

/// Processor time of all threads.
double seconds(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(std::int64_t image, std::int64_t batch, int repetitions) {
  const auto shapes = resnet50(image);
  auto row_major = layers_of(shapes, batch, at::MemoryFormat::Contiguous);
  auto channels_last = layers_of(shapes, batch, at::MemoryFormat::ChannelsLast);
  // Micro-batches of one step; then a step of one micro-batch, with all its overhead.
  const std::vector<std::function<void()>> programs = {
      [&] { with_libtorch(row_major); }, [&] { with_libtorch(channels_last); },
      [&] { with_convolution(channels_last); }, [&] { with_convolution(row_major); },
      [&] {
        step_overhead(channels_last);
        with_convolution(channels_last);
      }};
  std::vector<std::vector<double>> times(programs.size());
  for (int i = -1; i < repetitions; ++i)
    for (std::size_t p = 0; p < programs.size(); ++p) {
      const double time = seconds(programs[p]);
      if (i >= 0) times[p].push_back(time);
    }
  std::printf("%11lld", static_cast<long long>(batch));
  for (const auto& t : times) std::printf(" %14.1f", static_cast<double>(batch) / median(t));
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t image = argc > 1 ? std::atoll(argv[1]) : 128;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 5;
  std::printf(
      "images per processor second, ResNet-50's convolutions at %lldx%lld, %d threads, "
      "medians of %d\n",
      static_cast<long long>(image), static_cast<long long>(image), at::get_num_threads(),
      repetitions);
  std::printf("micro-batch %14s %14s %14s %14s %14s\n", "conv2d NCHW", "conv2d NHWC", "ours NHWC",
              "ours NCHW", "and new weights");
  for (const std::int64_t batch : {1, 2, 4, 8}) measure(image, batch, repetitions);
  return 0;
}
