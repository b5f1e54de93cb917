#pragma once

#include "conv/conv_geometry.h"
#include "conv/merged_axes.h"
#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {

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
  // The scratch: x and y if they are copied, then the plan's own.
  struct Buffers {
    std::byte *x, *y;
    std::span<std::byte> rest;
  };
  // Divides the pass's scratch memory in that order.
  Buffers BuffersOf(const RunContext& run) const {
    const std::span<std::byte> scratch = run.Scratch();
    return {scratch.data(), scratch.data() + x_.Bytes(), scratch.subspan(x_.Bytes() + y_.Bytes())};
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
    x_ = MergedAxes(ctx.Input(0), x, desc.dtype);
    y_ = MergedAxes(out, y, desc.dtype);
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
