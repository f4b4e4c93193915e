// The only file that knows oneDNN, and the one place where its versions 2 and 3 differ.
#include "libtorch/onednn.hpp"

#ifdef TROUPE_WITH_ONEDNN

#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "libtorch/blocked_weights.hpp"

#endif

namespace troupe::mp::libtorch {

OneDnnConvolution::~OneDnnConvolution() = default;

#ifndef TROUPE_WITH_ONEDNN

std::unique_ptr<OneDnnConvolution> make_onednn_convolution(const ConvolutionGeometry& geometry) {
  return nullptr;
}

#else

namespace {

using dnnl::memory;

constexpr auto float32 = memory::data_type::f32;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& stream() {
  static thread_local dnnl::stream stream(cpu());
  return stream;
}

/// Temporary memory, which only grows.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(data_); }

  void* at_least(std::size_t size) {
    if (size > size_) {
      constexpr std::size_t page = 4096;
      const std::size_t rounded = (size + page - 1) / page * page;
      std::free(std::exchange(data_, nullptr));
      size_ = 0;
      data_ = std::aligned_alloc(page, rounded);
      if (data_ == nullptr) throw std::bad_alloc();
      size_ = rounded;
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// What the kernels that run in this thread need besides their arguments. oneDNN's own scratchpad
/// belongs to the thread that created a primitive, which need not be the one that runs it.
Scratch& kernel_scratch() {
  static thread_local Scratch scratch;
  return scratch;
}

/// Holds a weight gradient before it is added to those before it. All convolutions share it, so
/// that it stays in the cache.
Scratch& gradient_scratch() {
  static thread_local Scratch scratch;
  return scratch;
}

/// Holds the same in another layout.
Scratch& relayout_scratch() {
  static thread_local Scratch scratch;
  return scratch;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// Descriptions of a convolution's arrays; the layout of the weights is left to oneDNN.
struct Descriptions {
  memory::desc input;
  memory::desc weight;
  memory::desc output;
  memory::dims strides;
  memory::dims padding;
};

/// The sizes of the weights: with a dimension for the groups where there are several.
memory::dims weight_sizes(const ConvolutionGeometry& g) {
  const memory::dim outputs = g.out_channels / g.groups;
  const memory::dim inputs = g.in_channels / g.groups;
  if (g.groups == 1) return {outputs, inputs, g.kernel_height, g.kernel_width};
  return {g.groups, outputs, inputs, g.kernel_height, g.kernel_width};
}

/// Row-major order of the weights: the same bytes with and without groups.
memory::desc row_major_weights(const ConvolutionGeometry& geometry) {
  return {weight_sizes(geometry), float32,
          geometry.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw};
}

Descriptions describe(const ConvolutionGeometry& geometry, const ConvolutionInput& shape) {
  constexpr auto channels_last = memory::format_tag::nhwc;
  Descriptions d;
  d.input = {
      {shape.batch, geometry.in_channels, shape.height, shape.width}, float32, channels_last};
  d.weight = {weight_sizes(geometry), float32, memory::format_tag::any};
  d.output = {{shape.batch, geometry.out_channels, geometry.out_height(shape.height),
               geometry.out_width(shape.width)},
              float32,
              channels_last};
  d.strides = {geometry.stride_height, geometry.stride_width};
  d.padding = {geometry.padding_height, geometry.padding_width};
  return d;
}

constexpr auto direct = dnnl::algorithm::convolution_direct;
constexpr auto training = dnnl::prop_kind::forward_training;

#if DNNL_VERSION_MAJOR >= 3

dnnl::binary::primitive_desc plan_addition(const memory::desc& d) {
  return {cpu(), dnnl::algorithm::binary_add, d, d, d, attributes()};
}

dnnl::convolution_forward::primitive_desc plan_forward(const Descriptions& d) {
  return {cpu(),    training,  direct,    d.input,   d.weight,
          d.output, d.strides, d.padding, d.padding, attributes()};
}

dnnl::convolution_backward_data::primitive_desc plan_backward_input(const Descriptions& d) {
  return {cpu(),     direct,    d.input,   d.weight,        d.output,
          d.strides, d.padding, d.padding, plan_forward(d), attributes()};
}

dnnl::convolution_backward_weights::primitive_desc plan_backward_weight(const Descriptions& d) {
  return {cpu(),     direct,    d.input,   d.weight,        d.output,
          d.strides, d.padding, d.padding, plan_forward(d), attributes()};
}

#else

dnnl::binary::primitive_desc plan_addition(const memory::desc& d) {
  return {{dnnl::algorithm::binary_add, d, d, d}, attributes(), cpu()};
}

dnnl::convolution_forward::primitive_desc plan_forward(const Descriptions& d) {
  return {{training, direct, d.input, d.weight, d.output, d.strides, d.padding, d.padding},
          attributes(),
          cpu()};
}

dnnl::convolution_backward_data::primitive_desc plan_backward_input(const Descriptions& d) {
  return {{direct, d.input, d.weight, d.output, d.strides, d.padding, d.padding},
          attributes(),
          cpu(),
          plan_forward(d)};
}

dnnl::convolution_backward_weights::primitive_desc plan_backward_weight(const Descriptions& d) {
  return {{direct, d.input, d.weight, d.output, d.strides, d.padding, d.padding},
          attributes(),
          cpu(),
          plan_forward(d)};
}

#endif

memory in(Scratch& scratch, const memory::desc& layout) {
  return memory(layout, cpu(), scratch.at_least(layout.get_size()));
}

/// A primitive with the memory it works on.
struct Pass {
  template <class Primitive, class Plan>
  static Pass of(const Plan& plan) {
    return {Primitive(plan), plan.scratchpad_desc()};
  }

  void run(std::unordered_map<int, memory> arguments) const {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, in(kernel_scratch(), scratchpad));
    primitive.execute(stream(), arguments);
    stream().wait();
  }

  dnnl::primitive primitive;
  memory::desc scratchpad;
};

memory view(const memory::desc& layout, const float* data) {
  return memory(layout, cpu(), const_cast<float*>(data));
}

void copy(memory from, memory to) {
  dnnl::reorder(from, to).execute(stream(), from, to);
  stream().wait();
}

/// The blocks of a 4-dimensional layout; nothing if it is of another kind.
std::optional<BlockedWeights> blocks_of(const memory::desc& d) {
#if DNNL_VERSION_MAJOR >= 3
  if (d.get_format_kind() != memory::format_kind::blocked || d.get_ndims() != 4)
    return std::nullopt;
  const auto sizes = d.get_dims();
  const auto strides = d.get_strides();
  const auto blocks = d.get_inner_blks();
  const auto dimensions = d.get_inner_idxs();
  const int count = d.get_inner_nblks();
#else
  if (d.data.format_kind != dnnl_blocked || d.data.extra.flags != 0 || d.data.ndims != 4)
    return std::nullopt;
  const auto& sizes = d.data.dims;
  const auto& strides = d.data.format_desc.blocking.strides;
  const auto& blocks = d.data.format_desc.blocking.inner_blks;
  const auto& dimensions = d.data.format_desc.blocking.inner_idxs;
  const int count = d.data.format_desc.blocking.inner_nblks;
#endif
  BlockedWeights found;
  found.out_channels = sizes[0];
  found.in_channels = sizes[1];
  found.height = sizes[2];
  found.width = sizes[3];
  found.out_stride = strides[0];
  found.in_stride = strides[1];
  found.height_stride = strides[2];
  found.width_stride = strides[3];
  std::int64_t step = 1;
  for (int i = count; i-- > 0; step *= blocks[i]) {
    if (dimensions[i] > 1 || blocks[i] % 16 != 0) return std::nullopt;
    auto& block = dimensions[i] == 0 ? found.out_block : found.in_block;
    if (block != 1) return std::nullopt;  // blocks of blocks
    block = blocks[i];
    (dimensions[i] == 0 ? found.out_step : found.in_step) = step;
  }
  return found;
}

class PlannedConvolution final : public OneDnnConvolution {
 public:
  explicit PlannedConvolution(const ConvolutionGeometry& geometry)
      : geometry_(geometry), row_major_(row_major_weights(geometry)) {}

  void weight_changed() override {
    for (auto& packed : packed_) packed.current = false;
  }

  void forward(const ConvolutionInput& shape, const float* input, const float* weight,
               float* output) override {
    Passes& passes = passes_for(shape);
    if (!passes.forward) {
      const auto plan = plan_forward(passes.layouts);
      passes.forward = Pass::of<dnnl::convolution_forward>(plan);
      passes.forward_weight = plan.weights_desc();
    }
    passes.forward->run({{DNNL_ARG_SRC, view(passes.layouts.input, input)},
                         {DNNL_ARG_WEIGHTS, packed(passes.forward_weight, weight)},
                         {DNNL_ARG_DST, view(passes.layouts.output, output)}});
  }

  void backward_input(const ConvolutionInput& shape, const float* output_gradient,
                      const float* weight, float* input_gradient) override {
    Passes& passes = passes_for(shape);
    if (!passes.backward_input) {
      const auto plan = plan_backward_input(passes.layouts);
      passes.backward_input = Pass::of<dnnl::convolution_backward_data>(plan);
      passes.backward_input_weight = plan.weights_desc();
    }
    passes.backward_input->run({{DNNL_ARG_DIFF_DST, view(passes.layouts.output, output_gradient)},
                                {DNNL_ARG_WEIGHTS, packed(passes.backward_input_weight, weight)},
                                {DNNL_ARG_DIFF_SRC, view(passes.layouts.input, input_gradient)}});
  }

  void backward_weight(const ConvolutionInput& shape, const float* input,
                       const float* output_gradient) override {
    Passes& passes = passes_for(shape);
    if (!passes.backward_weight) {
      const auto plan = plan_backward_weight(passes.layouts);
      passes.backward_weight = Pass::of<dnnl::convolution_backward_weights>(plan);
      passes.weight_gradient = plan.diff_weights_desc();
    }
    const memory target = has_gradient_ ? in(gradient_scratch(), passes.weight_gradient)
                                        : empty_gradient(passes.weight_gradient);
    passes.backward_weight->run({{DNNL_ARG_SRC, view(passes.layouts.input, input)},
                                 {DNNL_ARG_DIFF_DST, view(passes.layouts.output, output_gradient)},
                                 {DNNL_ARG_DIFF_WEIGHTS, target}});
    if (has_gradient_) add(target);
    has_gradient_ = true;
  }

  bool has_gradient() const override { return has_gradient_; }

  void take_gradient(float* gradient) override {
    if (const auto blocks = blocks_of(gradient_.get_desc()))
      unpack(*blocks, static_cast<const float*>(gradient_.get_data_handle()), gradient);
    else
      copy(gradient_, view(row_major_, gradient));
    has_gradient_ = false;
  }

  void discard_gradient() override { has_gradient_ = false; }

 private:
  /// What is known for one input shape. Passes are created when first needed.
  struct Passes {
    Descriptions layouts;
    std::optional<Pass> forward;
    std::optional<Pass> backward_input;
    std::optional<Pass> backward_weight;
    memory::desc forward_weight;
    memory::desc backward_input_weight;
    memory::desc weight_gradient;
  };

  struct PackedWeight {
    memory data;
    bool current = false;
  };

  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, int>;

  Passes& passes_for(const ConvolutionInput& shape) {
    // Kernels are made for exact shapes. Inputs of ever new sizes must not fill the memory.
    constexpr std::size_t most_shapes = 16;
    const Key key{shape.batch, shape.height, shape.width, shape.threads};
    const auto found = passes_.find(key);
    if (found != passes_.end()) return found->second;
    if (passes_.size() == most_shapes) passes_.clear();
    Passes passes;
    passes.layouts = describe(geometry_, shape);
    return passes_.emplace(key, std::move(passes)).first->second;
  }

  const memory& packed(const memory::desc& layout, const float* weight) {
    PackedWeight* found = nullptr;
    for (auto& packed : packed_)
      if (packed.data.get_desc() == layout) found = &packed;
    if (found == nullptr) found = &packed_.emplace_back(PackedWeight{memory(layout, cpu())});
    if (!found->current) copy(view(row_major_, weight), found->data);
    found->current = true;
    return found->data;
  }

  /// The accumulator, to be overwritten by the first gradient and so in its layout.
  const memory& empty_gradient(const memory::desc& layout) {
    if (!gradient_ || gradient_.get_desc() != layout) {
      gradient_ = memory(layout, cpu());
      addition_ = Pass::of<dnnl::binary>(plan_addition(layout));
    }
    return gradient_;
  }

  /// Adds `term` to the accumulator, which another shape may have left in another layout.
  void add(memory term) {
    const memory::desc layout = gradient_.get_desc();
    if (term.get_desc() != layout) {
      const memory same = in(relayout_scratch(), layout);
      copy(term, same);
      term = same;
    }
    addition_->run(
        {{DNNL_ARG_SRC_0, gradient_}, {DNNL_ARG_SRC_1, term}, {DNNL_ARG_DST, gradient_}});
  }

  ConvolutionGeometry geometry_;
  memory::desc row_major_;
  std::map<Key, Passes> passes_;
  std::vector<PackedWeight> packed_;
  memory gradient_;
  std::optional<Pass> addition_;
  bool has_gradient_ = false;
};

}  // namespace

std::unique_ptr<OneDnnConvolution> make_onednn_convolution(const ConvolutionGeometry& geometry) {
  return std::make_unique<PlannedConvolution>(geometry);
}

#endif

}  // namespace troupe::mp::libtorch
