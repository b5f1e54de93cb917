#pragma once

#include "conv/conv_geometry.h"
#include "shared/checks.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {

// A tensor whose leading axes are merged into one, or that gets an additional last axis of length
// 1: the same row-major order under a shape of another rank. If only one of the two shapes is an
// image's, which has another memory order, the numbers are copied to and from scratch memory.
class MergedAxes {
 public:
  MergedAxes() = default;
  // `begin`: the offset of the copy in the scratch memory that the calls below get.
  MergedAxes(const Shape& real, const Shape& merged, DType dtype, size_t begin)
      : real_(real),
        merged_(merged),
        dtype_(dtype),
        copies_(real.Rank() != merged.Rank() && (IsNhwc(real) || IsNhwc(merged))),
        begin_(begin) {}

  // Returns whether the two shapes differ.
  bool merges() const { return real_ != merged_; }
  // Returns the bytes of scratch memory; 0 if nothing is copied.
  size_t Bytes() const {
    return copies_ ? AlignedBytes(static_cast<size_t>(merged_.Count()) * SizeOf(dtype_)) : 0;
  }

  // Returns the merged tensor that holds x.
  ConstTensor Read(const Device& device, const ConstTensor& x, std::span<std::byte> scratch) const {
    if (!copies_) return {x.data, merged_, dtype_};
    const Tensor copy{scratch.data() + begin_, merged_, dtype_};
    if (IsNhwc(real_)) {
      CopyToNchw(device, x, copy.data);
    } else {
      CopyFromNchw(device, x.data, copy);
    }
    return copy;
  }

  // Returns the merged tensor in which y is computed; Write then copies it to y.
  Tensor Place(const Tensor& y, std::span<std::byte> scratch) const {
    return {copies_ ? scratch.data() + begin_ : y.data, merged_, dtype_};
  }
  // Copies the result from scratch memory to y if Place put it there.
  void Write(const Device& device, const Tensor& y, std::span<std::byte> scratch) const {
    if (!copies_) return;
    const Tensor result = Place(y, scratch);
    if (IsNhwc(real_)) {
      CopyFromNchw(device, result.data, y);
    } else {
      CopyToNchw(device, result, y.data);
    }
  }

 private:
  Shape real_, merged_;
  DType dtype_ = DType::kF32;
  bool copies_ = false;  // the shapes have different memory orders
  size_t begin_ = 0;
};

// A convolution of tensors with merged axes: it copies them to and from the first bytes of the
// scratch memory where MergedAxes must, and runs `conv` in the rest.
class MergedAxesConv final : public ConvPrimitive {
 public:
  MergedAxesConv(std::unique_ptr<ConvPrimitive> conv, const Device& device, MergedAxes x,
                 MergedAxes y)
      : conv_(std::move(conv)), device_(device), x_(std::move(x)), y_(std::move(y)) {
    set_skipped_kernels(conv_->skipped_kernels());
  }

  std::string kernel() const override { return conv_->kernel(); }
  size_t ScratchBytes() const override { return x_.Bytes() + y_.Bytes() + conv_->ScratchBytes(); }
  std::optional<PackedLayout> packed_layout() const override { return conv_->packed_layout(); }
  void UsePackedWeight(const void* copy, const bool* holds) override {
    conv_->UsePackedWeight(copy, holds);
  }
  void AllowDroppedNan() override { conv_->AllowDroppedNan(); }

  void Forward(ConstTensor x, const float* weight, const float* bias, Tensor y,
               std::span<std::byte> scratch) override {
    conv_->Forward(x_.Read(device_, x, scratch), weight, bias, y_.Place(y, scratch),
                   OwnScratch(scratch));
    y_.Write(device_, y, scratch);
  }
  void BackwardWeight(ConstTensor x, ConstTensor dy, float* dweight, float* dbias,
                      std::span<std::byte> scratch) override {
    conv_->BackwardWeight(x_.Read(device_, x, scratch), y_.Read(device_, dy, scratch), dweight,
                          dbias, OwnScratch(scratch));
  }
  void BackwardData(ConstTensor dy, const float* weight, Tensor dx,
                    std::span<std::byte> scratch) override {
    conv_->BackwardData(y_.Read(device_, dy, scratch), weight, x_.Place(dx, scratch),
                        OwnScratch(scratch));
    x_.Write(device_, dx, scratch);
  }

 private:
  std::span<std::byte> OwnScratch(std::span<std::byte> scratch) const {
    return scratch.subspan(x_.Bytes() + y_.Bytes());
  }

  std::unique_ptr<ConvPrimitive> conv_;
  const Device& device_;
  MergedAxes x_, y_;
};

// Base class of convolution and deconvolution: several bottoms of one shape with a top each share
// one primitive and its weights. A derived class calls RequirePairs and SetupPairs in its Setup.
class ConvLayer : public Layer {
 public:
  explicit ConvLayer(const LayerSpec& spec) : spec_(spec) {}

  void Prepare(PrepareContext& ctx) override {
    conv_ = ctx.device().NewConv(desc_);
    if (merges()) {
      conv_ = std::make_unique<MergedAxesConv>(std::move(conv_), ctx.device(), x_, y_);
    }
    if (may_drop_nan_) conv_->AllowDroppedNan();
    ctx.Scratch(conv_->ScratchBytes());
  }
  std::optional<PackedLayout> packed_layout() const final { return conv_->packed_layout(); }
  void UsePackedWeight(const void* copy, const bool* holds) final {
    conv_->UsePackedWeight(copy, holds);
  }
  // May be called before or after Prepare; it also holds for later primitives.
  void AllowDroppedNan() final {
    may_drop_nan_ = true;
    if (conv_ != nullptr) conv_->AllowDroppedNan();
  }
  std::string kernel() const override { return conv_->kernel(); }
  std::vector<std::string> skipped_kernels() const final { return conv_->skipped_kernels(); }
  int64_t Macs() const final { return macs_; }

 protected:
  // Throws kConfig unless there is one top per bottom and all bottoms have the same shape.
  void RequirePairs(const SetupContext& ctx) const {
    if (ctx.NumInputs() != ctx.NumOutputs()) {
      spec_.Fail(Join("has ", ctx.NumInputs(), " bottoms and ", ctx.NumOutputs(),
                      " tops; give one top per bottom"));
    }
    RequireEqualShapes(ctx, spec_);
  }

  // Declares the outputs for the convolution geometry.desc. `transposed`: it goes from the tops to
  // the bottoms.
  void SetupPairs(SetupContext& ctx, const ConvGeometry& geometry, bool transposed) {
    desc_ = geometry.desc;
    axis_ = geometry.axis;
    macs_ = desc_.Macs() * ctx.NumInputs();
    const Shape in = desc_.InShape(), out = desc_.OutShape(), bottom = ctx.Input(0);
    const Shape top = geometry.LayerShape(transposed ? in : out);
    x_ = MergedAxes(transposed ? top : bottom, in, desc_.dtype, 0);
    y_ = MergedAxes(transposed ? bottom : top, out, desc_.dtype, x_.Bytes());
    for (int i = 0; i < ctx.NumInputs(); ++i) {
      ctx.Output(i, top, ctx.InputType(i));
      ctx.SaveInput(i);
    }
  }

  // Returns whether some bottom or top has not the shape of desc_.
  bool merges() const { return x_.merges() || y_.merges(); }

  // Returns true if top i has no gradient; then sets the bottom's gradient to 0.
  static bool HasNoGradient(const RunContext& run, int i) {
    if (run.HasGradOutput(i)) return false;
    if (run.NeedsGradInput(i)) run.device().Zero(run.GradInput(i).data, run.GradInput(i).Bytes());
    return true;
  }

  LayerSpec spec_;
  ConvDesc desc_;
  int axis_ = 1;  // the channels' axis of the bottoms and tops
  std::unique_ptr<ConvPrimitive> conv_;

 private:
  MergedAxes x_, y_;  // the input and the output of desc_
  int64_t macs_ = 0;
  bool may_drop_nan_ = false;
};

}  // namespace trainer
