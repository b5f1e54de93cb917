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
  // `begin`: the offset of the copy in the layer's scratch memory.
  MergedAxes(const Shape& real, const Shape& merged, DType dtype, size_t begin)
      : real_(real),
        merged_(merged),
        dtype_(dtype),
        copies_(real.Rank() != merged.Rank() && (IsNhwc(real) || IsNhwc(merged))),
        begin_(begin) {}

  // Returns the bytes of scratch memory; 0 if nothing is copied.
  size_t Bytes() const {
    return copies_ ? AlignedBytes(static_cast<size_t>(merged_.Count()) * SizeOf(dtype_)) : 0;
  }

  // Returns the merged tensor that holds x.
  ConstTensor Read(const RunContext& run, const ConstTensor& x) const {
    if (!copies_) return {x.data, merged_, dtype_};
    const Tensor copy{run.Scratch().data() + begin_, merged_, dtype_};
    if (IsNhwc(real_)) {
      CopyToNchw(run.device(), x, copy.data);
    } else {
      CopyFromNchw(run.device(), x.data, copy);
    }
    return copy;
  }

  // Returns the merged tensor in which y is computed; Write then copies it to y.
  Tensor Place(const RunContext& run, const Tensor& y) const {
    return {copies_ ? run.Scratch().data() + begin_ : y.data, merged_, dtype_};
  }
  // Copies the result from scratch memory to y if Place put it there.
  void Write(const RunContext& run, const Tensor& y) const {
    if (!copies_) return;
    const Tensor result = Place(run, y);
    if (IsNhwc(real_)) {
      CopyFromNchw(run.device(), result.data, y);
    } else {
      CopyToNchw(run.device(), result, y.data);
    }
  }

 private:
  Shape real_, merged_;
  DType dtype_ = DType::kF32;
  bool copies_ = false;  // the shapes have different memory orders
  size_t begin_ = 0;
};

// Base class of convolution and deconvolution: several bottoms of one shape with a top each share
// one primitive and its weights. Tensors that the primitive sees with another number of axes are
// copied to and from scratch memory (MergedAxes). A derived class calls RequirePairs and SetupPairs
// in its Setup.
class ConvLayer : public Layer {
 public:
  explicit ConvLayer(const LayerSpec& spec) : spec_(spec) {}

  void Prepare(PrepareContext& ctx) final {
    conv_ = ctx.device().NewConv(desc_);
    if (may_drop_nan_) conv_->AllowDroppedNan();
    ctx.Scratch(x_.Bytes() + y_.Bytes() + conv_->ScratchBytes());
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
  std::string kernel() const final { return conv_->kernel(); }
  std::vector<std::string> skipped_kernels() const final { return conv_->skipped_kernels(); }
  int64_t Macs() const final { return macs_; }

 protected:
  // Returns the primitive's own scratch memory, which follows the copies of x and y.
  std::span<std::byte> ConvScratch(const RunContext& run) const {
    return run.Scratch().subspan(x_.Bytes() + y_.Bytes());
  }

  // Throws kConfig unless there is one top per bottom and all bottoms have the same shape.
  void RequirePairs(const SetupContext& ctx) const {
    if (ctx.NumInputs() != ctx.NumOutputs()) {
      spec_.Fail(Join("has ", ctx.NumInputs(), " bottoms and ", ctx.NumOutputs(),
                      " tops; give one top per bottom"));
    }
    RequireEqualShapes(ctx, spec_);
  }

  // Declares the outputs for the plan `desc`. The plan gets bottoms in shape `x` and tops in shape
  // `y`; other layers get tops in shape `out`.
  void SetupPairs(SetupContext& ctx, const ConvDesc& desc, const Shape& x, const Shape& y,
                  const Shape& out) {
    x_ = MergedAxes(ctx.Input(0), x, desc.dtype, 0);
    y_ = MergedAxes(out, y, desc.dtype, x_.Bytes());
    for (int i = 0; i < ctx.NumInputs(); ++i) {
      ctx.Output(i, out, ctx.InputType(i));
      ctx.SaveInput(i);
    }
    macs_ = desc.Macs() * ctx.NumInputs();
    desc_ = desc;
  }

  // Returns true if top i has no gradient; then sets the bottom's gradient to 0.
  static bool HasNoGradient(const RunContext& run, int i) {
    if (run.HasGradOutput(i)) return false;
    if (run.NeedsGradInput(i)) run.device().Zero(run.GradInput(i).data, run.GradInput(i).Bytes());
    return true;
  }

  LayerSpec spec_;
  MergedAxes x_, y_;
  ConvDesc desc_;
  std::unique_ptr<ConvPrimitive> conv_;

 private:
  int64_t macs_ = 0;
  bool may_drop_nan_ = false;
};

}  // namespace trainer
