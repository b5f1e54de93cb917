#include "cpu/conv/onednn_kernels.h"

#include <algorithm>
#include <array>

#include "cpu/onednn.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer::cpu {
namespace {

using onednn::Choice;
using onednn::Data;
using onednn::Dims;

// Returns whether oneDNN 2.6.3 computes this correctly with tile registers. Comparisons of random
// shapes with the reference have shown wrong weight gradients with dilation, and outputs that were
// not written if a window covers only padding.
bool TilesAreRight(const ConvDesc& desc) {
  if (desc.in.size() != 2) return false;
  for (size_t i = 0; i < desc.in.size(); ++i) {
    if (desc.dilation[i] != 1 || desc.pad[i] >= desc.kernel[i]) return false;
  }
  return true;
}

// A description as oneDNN descriptors. `..._lib` may leave the layout to the library.
struct ConvDescriptors {
  ConvDescriptors(const ConvDesc& desc, ConvLayout layout)
      : x(Ours(desc.InShape(), desc.dtype)),
        y(Ours(desc.OutShape(), desc.dtype)),
        weight(onednn::RowMajor(WeightDims(desc), DType::kF32)),
        bias(onednn::RowMajor({desc.out_channels}, DType::kF32)),
        x_lib(layout == ConvLayout::kOurs ? x : onednn::Any(DimsOf(desc.InShape()), desc.dtype)),
        y_lib(layout == ConvLayout::kOurs ? y : onednn::Any(DimsOf(desc.OutShape()), desc.dtype)),
        weight_lib(onednn::Any(WeightDims(desc), desc.dtype)),
        grad_lib(onednn::Any(WeightDims(desc), DType::kF32)),
        has_bias(desc.bias),
        relu(desc.relu),
        tiles(TilesAreRight(desc)) {
    for (size_t i = 0; i < desc.kernel.size(); ++i) {
      // oneDNN multiplies as ints
      stride[i] = std::min(desc.stride[i], desc.in[i] + 2 * desc.pad[i]);
      dilate[i] = desc.dilation[i] - 1;  // oneDNN counts the gaps between taps
      pad[i] = desc.pad[i];
    }
  }

  static Dims DimsOf(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }
  // Describes a tensor in its own layout: channels-last for images.
  static dnnl_memory_desc_t Ours(const Shape& shape, DType type) {
    const Dims dims = DimsOf(shape);
    return shape.IsImage() ? onednn::ChannelsLast(dims, type) : onednn::RowMajor(dims, type);
  }
  // Returns (M, C, kernel...), with the group as an additional first axis if there are several.
  static Dims WeightDims(const ConvDesc& desc) {
    Dims dims = DimsOf(desc.WeightShape());
    if (desc.group > 1) {
      dims[0] /= desc.group;
      dims.insert(dims.begin(), desc.group);
    }
    return dims;
  }

  // Describes a weight that is (C, M, kernel...) in memory, per group.
  static dnnl_memory_desc_t InputsFirst(const ConvDesc& desc) {
    const Dims dims = WeightDims(desc);
    const size_t m = dims.size() - 2 - desc.kernel.size(), c = m + 1;
    Dims strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i > c; --i) strides[i - 1] = strides[i] * dims[i];
    strides[m] = strides[c];
    strides[c] = strides[m] * dims[m];
    if (m > 0) strides[0] = dims[m] * strides[m] * dims[c];
    return onednn::Strided(dims, strides, DType::kF32);
  }

  // Asks the library for a forward kernel.
  Choice Forward() const {
    dnnl_convolution_desc_t op;
    onednn::Check(dnnl_dilated_convolution_forward_desc_init(
                      &op, dnnl_forward_training, dnnl_convolution_direct, &x_lib, &weight_lib,
                      has_bias ? &bias : nullptr, &y_lib, stride, dilate, pad, pad),
                  "describing a convolution");
    return Choice(&op, tiles, relu ? onednn::PostOp::kRelu : onednn::PostOp::kNone);
  }
  // Asks the library for a kernel of the data gradient. `forward` is its hint for layouts.
  Choice BackwardData(const Choice& forward) const {
    dnnl_convolution_desc_t op;
    onednn::Check(
        dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, &x_lib, &weight_lib, &y_lib, stride, dilate, pad, pad),
        "describing a convolution's data gradient");
    return Choice(&op, tiles, onednn::PostOp::kNone, &forward);
  }
  // Asks the library for a kernel of the weight gradient, and of the bias gradient if there is one.
  Choice BackwardWeight(const Choice& forward) const {
    dnnl_convolution_desc_t op;
    onednn::Check(dnnl_dilated_convolution_backward_weights_desc_init(
                      &op, dnnl_convolution_direct, &x_lib, &grad_lib, has_bias ? &bias : nullptr,
                      &y_lib, stride, dilate, pad, pad),
                  "describing a convolution's weight gradient");
    return Choice(&op, tiles, onednn::PostOp::kNone, &forward);
  }

  dnnl_memory_desc_t x, y, weight, bias;
  dnnl_memory_desc_t x_lib, y_lib, weight_lib, grad_lib;
  dnnl_dims_t stride{}, dilate{}, pad{};
  bool has_bias, relu, tiles;
};

// Returns whether the library would compute bf16 without instructions for it.
bool LibraryIsSlow(const ConvDesc& desc) {
  return desc.dtype == DType::kBF16 && !HasBf16Instructions();
}

// Returns whether the library has chosen a kernel other than its reference loops; also excludes
// im2col kernels ("gemm") unless `any_kernel`.
bool IsAcceptableKernel(const Choice& choice, bool any_kernel) {
  if (!choice) return false;
  const std::string name = choice.Name();
  if (name.find("ref") != std::string::npos) return false;
  return any_kernel || name.find("gemm:") == std::string::npos;
}

// Runs the library's forward kernel, and copies tensors whose layout the library does not use.
class OneDnnForward final : public ConvForward {
 public:
  OneDnnForward(const ConvDescriptors& d, const Choice& choice) : op_(choice), bias_(d.has_bias) {
    op_.In(DNNL_ARG_SRC, d.x, choice.Md(dnnl_query_src_md));
    op_.In(DNNL_ARG_WEIGHTS, d.weight, choice.Md(dnnl_query_weights_md));
    op_.Out(DNNL_ARG_DST, d.y, choice.Md(dnnl_query_dst_md));
    if (bias_) op_.In(DNNL_ARG_BIAS, d.bias, d.bias);
  }

  std::string Name() const override { return "onednn " + op_.Name(); }
  size_t ScratchBytes() const override { return op_.ScratchBytes(); }
  void Run(const void* x, const float* weight, const float* bias, void* y,
           std::span<std::byte> scratch) override {
    const std::array<Data, 4> data = {
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, bias}}};
    op_.Run(std::span(data.data(), bias_ ? 4 : 3), scratch);
  }

 private:
  onednn::Operation op_;
  bool bias_;
};

// Runs the library's kernel of the data gradient, with such copies.
class OneDnnBackwardData final : public ConvBackwardData {
 public:
  OneDnnBackwardData(const ConvDescriptors& d, const Choice& choice) : op_(choice) {
    op_.In(DNNL_ARG_DIFF_DST, d.y, choice.Md(dnnl_query_diff_dst_md));
    op_.In(DNNL_ARG_WEIGHTS, d.weight, choice.Md(dnnl_query_weights_md));
    op_.Out(DNNL_ARG_DIFF_SRC, d.x, choice.Md(dnnl_query_diff_src_md));
  }

  std::string Name() const override { return "onednn " + op_.Name(); }
  size_t ScratchBytes() const override { return op_.ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    const std::array<Data, 3> data = {
        {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, dx}}};
    op_.Run(data, scratch);
  }

 private:
  onednn::Operation op_;
};

// Runs the library's kernel of the weight gradient, and adds its result to the existing gradient.
class OneDnnBackwardWeight final : public ConvBackwardWeight {
 public:
  OneDnnBackwardWeight(const ConvDescriptors& d, const Choice& choice)
      : op_(choice), bias_(d.has_bias) {
    op_.In(DNNL_ARG_SRC, d.x, choice.Md(dnnl_query_src_md));
    op_.In(DNNL_ARG_DIFF_DST, d.y, choice.Md(dnnl_query_diff_dst_md));
    op_.Out(DNNL_ARG_DIFF_WEIGHTS, d.weight, choice.Md(dnnl_query_diff_weights_md), true);
    if (bias_) op_.Out(DNNL_ARG_DIFF_BIAS, d.bias, d.bias, true);
  }

  std::string Name() const override { return "onednn " + op_.Name(); }
  size_t ScratchBytes() const override { return op_.ScratchBytes(); }
  void Run(const void* x, const void* dy, float* dweight, float* dbias,
           std::span<std::byte> scratch) override {
    const std::array<Data, 4> data = {{{DNNL_ARG_SRC, x},
                                       {DNNL_ARG_DIFF_DST, dy},
                                       {DNNL_ARG_DIFF_WEIGHTS, dweight},
                                       {DNNL_ARG_DIFF_BIAS, dbias}}};
    op_.Run(std::span(data.data(), bias_ ? 4 : 3), scratch);
  }

 private:
  onednn::Operation op_;
  bool bias_;
};

}  // namespace

std::unique_ptr<ConvForward> MakeOneDnnForward(const ConvDesc& desc, ConvLayout layout,
                                               bool any_kernel, WeightOrder order) {
  if (LibraryIsSlow(desc)) return nullptr;
  ConvDescriptors d(desc, layout);
  if (order == WeightOrder::kInputsFirst) d.weight = ConvDescriptors::InputsFirst(desc);
  const Choice forward = d.Forward();
  if (!IsAcceptableKernel(forward, any_kernel)) return nullptr;
  return std::make_unique<OneDnnForward>(d, forward);
}

std::unique_ptr<ConvBackwardData> MakeOneDnnBackwardData(const ConvDesc& desc, ConvLayout layout,
                                                         bool any_kernel) {
  if (LibraryIsSlow(desc)) return nullptr;
  ConvDescriptors d(desc, layout);
  d.relu = false;
  const Choice forward = d.Forward();
  if (!forward) return nullptr;
  const Choice choice = d.BackwardData(forward);
  if (!IsAcceptableKernel(choice, any_kernel)) return nullptr;
  return std::make_unique<OneDnnBackwardData>(d, choice);
}

std::unique_ptr<ConvBackwardWeight> MakeOneDnnBackwardWeight(const ConvDesc& desc,
                                                             ConvLayout layout, bool any_kernel) {
  if (LibraryIsSlow(desc)) return nullptr;
  ConvDescriptors d(desc, layout);
  d.relu = false;
  const Choice forward = d.Forward();
  if (!forward) return nullptr;
  const Choice choice = d.BackwardWeight(forward);
  if (!IsAcceptableKernel(choice, any_kernel)) return nullptr;
  return std::make_unique<OneDnnBackwardWeight>(d, choice);
}

}  // namespace trainer::cpu
