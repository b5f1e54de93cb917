#include <array>

#include "cpu/conv_steps.h"
#include "cpu/onednn.h"
#include "trainer/backend/parallel_for.h"

namespace trainer::cpu {
namespace {

using onednn::Choice;
using onednn::Data;
using onednn::Dims;

// A description in oneDNN's terms. `..._lib` may leave the layout to the library.
struct Described {
  Described(const ConvDesc& desc, ConvLayout layout)
      : x(Ours(desc.InShape(), desc.dtype)),
        y(Ours(desc.OutShape(), desc.dtype)),
        weight(onednn::Plain(WeightDims(desc), DType::kF32)),
        bias(onednn::Plain({desc.out_channels}, DType::kF32)),
        type_lib(layout == ConvLayout::kFloat ? DType::kF32 : desc.dtype),
        x_lib(layout == ConvLayout::kOurs ? x : onednn::Any(DimsOf(desc.InShape()), type_lib)),
        y_lib(layout == ConvLayout::kOurs ? y : onednn::Any(DimsOf(desc.OutShape()), type_lib)),
        weight_lib(onednn::Any(WeightDims(desc), type_lib)),
        grad_lib(onednn::Any(WeightDims(desc), DType::kF32)),
        has_bias(desc.bias) {
    for (size_t i = 0; i < desc.kernel.size(); ++i) {
      stride[i] = desc.stride[i];
      dilate[i] = desc.dilation[i] - 1;  // oneDNN counts the holes
      pad[i] = desc.pad[i];
    }
  }

  static Dims DimsOf(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }
  static dnnl_memory_desc_t Ours(const Shape& shape, DType type) {
    const Dims dims = DimsOf(shape);
    return shape.IsImage() ? onednn::ChannelsLast(dims, type) : onednn::Plain(dims, type);
  }
  static Dims WeightDims(const ConvDesc& desc) {
    Dims dims = DimsOf(desc.WeightShape());
    if (desc.group > 1) {
      dims[0] /= desc.group;
      dims.insert(dims.begin(), desc.group);
    }
    return dims;
  }

  Choice Forward() const {
    dnnl_convolution_desc_t op;
    onednn::Check(dnnl_dilated_convolution_forward_desc_init(
                      &op, dnnl_forward_training, dnnl_convolution_direct, &x_lib, &weight_lib,
                      has_bias ? &bias : nullptr, &y_lib, stride, dilate, pad, pad),
                  "describing a convolution");
    return Choice(&op);
  }
  Choice BackwardData(const Choice& forward) const {
    dnnl_convolution_desc_t op;
    onednn::Check(
        dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, &x_lib, &weight_lib, &y_lib, stride, dilate, pad, pad),
        "describing a convolution's data gradient");
    return Choice(&op, false, &forward);
  }
  Choice BackwardWeight(const Choice& forward) const {
    dnnl_convolution_desc_t op;
    onednn::Check(dnnl_dilated_convolution_backward_weights_desc_init(
                      &op, dnnl_convolution_direct, &x_lib, &grad_lib, has_bias ? &bias : nullptr,
                      &y_lib, stride, dilate, pad, pad),
                  "describing a convolution's weight gradient");
    return Choice(&op, false, &forward);
  }

  dnnl_memory_desc_t x, y, weight, bias;
  DType type_lib;
  dnnl_memory_desc_t x_lib, y_lib, weight_lib, grad_lib;
  dnnl_dims_t stride{}, dilate{}, pad{};
  bool has_bias;
};

bool Takes(const Choice& choice, bool any_kernel) {
  if (!choice) return false;
  const std::string name = choice.Name();
  if (name.find("ref") != std::string::npos) return false;
  return any_kernel || name.find("gemm:") == std::string::npos;
}

class OneDnnForward final : public ConvForward {
 public:
  OneDnnForward(const Described& d, const Choice& choice) : op_(choice), bias_(d.has_bias) {
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

class OneDnnBackwardData final : public ConvBackwardData {
 public:
  OneDnnBackwardData(const Described& d, const Choice& choice) : op_(choice) {
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

class OneDnnBackwardWeight final : public ConvBackwardWeight {
 public:
  OneDnnBackwardWeight(const Described& d, const Choice& choice) : op_(choice), bias_(d.has_bias) {
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

// The convolution whose forward pass is the data gradient of `desc`.
ConvDesc Turned(const ConvDesc& desc) {
  ConvDesc turned = desc;
  turned.in_channels = desc.out_channels;
  turned.out_channels = desc.in_channels;
  turned.in = desc.Out();
  turned.bias = false;
  for (size_t i = 0; i < desc.pad.size(); ++i) {
    turned.pad[i] = desc.dilation[i] * (desc.kernel[i] - 1) - desc.pad[i];
  }
  return turned;
}

class TurnedBackwardData final : public ConvBackwardData {
 public:
  TurnedBackwardData(const ConvDesc& desc, std::unique_ptr<ConvForward> forward)
      : forward_(std::move(forward)),
        group_(desc.group),
        out_(desc.out_channels / desc.group),
        in_(desc.in_channels / desc.group),
        area_(desc.WeightShape().Count(2)),
        weight_bytes_((desc.WeightShape().Count() * sizeof(float) + 63) / 64 * 64) {}

  std::string Name() const override { return forward_->Name() + " turned"; }
  size_t ScratchBytes() const override { return weight_bytes_ + forward_->ScratchBytes(); }
  void Run(const void* dy, const float* weight, void* dx, std::span<std::byte> scratch) override {
    float* turned = reinterpret_cast<float*>(scratch.data());
    ParallelRanges(group_ * in_, 1 + 4096 / (out_ * area_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) Turn(row / in_, row % in_, weight, turned);
    });
    forward_->Run(dy, turned, nullptr, dx, scratch.subspan(weight_bytes_));
  }

 private:
  // (G, M, C, area) becomes (G, C, M, area backwards); one row of C.
  void Turn(int64_t group, int64_t channel, const float* weight, float* turned) const {
    float* to = turned + (group * in_ + channel) * out_ * area_;
    const float* from = weight + (group * out_ * in_ + channel) * area_;
    for (int64_t m = 0; m < out_; ++m, to += area_, from += in_ * area_) {
      for (int64_t i = 0; i < area_; ++i) to[i] = from[area_ - 1 - i];
    }
  }

  std::unique_ptr<ConvForward> forward_;
  int64_t group_, out_, in_, area_;
  size_t weight_bytes_;
};

}  // namespace

std::unique_ptr<ConvForward> MakeOneDnnForward(const ConvDesc& desc, ConvLayout layout,
                                               bool any_kernel) {
  const Described d(desc, layout);
  const Choice forward = d.Forward();
  if (!Takes(forward, any_kernel)) return nullptr;
  return std::make_unique<OneDnnForward>(d, forward);
}

std::unique_ptr<ConvBackwardData> MakeOneDnnBackwardData(const ConvDesc& desc, ConvLayout layout,
                                                         bool any_kernel) {
  const Described d(desc, layout);
  const Choice forward = d.Forward();
  if (!forward) return nullptr;
  const Choice choice = d.BackwardData(forward);
  if (!Takes(choice, any_kernel)) return nullptr;
  return std::make_unique<OneDnnBackwardData>(d, choice);
}

std::unique_ptr<ConvBackwardWeight> MakeOneDnnBackwardWeight(const ConvDesc& desc,
                                                             ConvLayout layout, bool any_kernel) {
  const Described d(desc, layout);
  const Choice forward = d.Forward();
  if (!forward) return nullptr;
  const Choice choice = d.BackwardWeight(forward);
  if (!Takes(choice, any_kernel)) return nullptr;
  return std::make_unique<OneDnnBackwardWeight>(d, choice);
}

std::unique_ptr<ConvBackwardData> MakeTurnedBackwardData(const ConvDesc& desc) {
  // Its last vector of outputs would be mostly empty.
  if (desc.in.size() != 2 || desc.in_channels / desc.group % 16 != 0) return nullptr;
  for (size_t i = 0; i < desc.pad.size(); ++i) {
    if (desc.stride[i] != 1 || desc.pad[i] > desc.dilation[i] * (desc.kernel[i] - 1)) {
      return nullptr;
    }
  }
  auto forward = MakeOneDnnForward(Turned(desc), ConvLayout::kOurs, false);
  if (!forward) return nullptr;
  return std::make_unique<TurnedBackwardData>(desc, std::move(forward));
}

}  // namespace trainer::cpu
