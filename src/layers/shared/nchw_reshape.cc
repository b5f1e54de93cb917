#include "shared/nchw_reshape.h"

#include "trainer/backend/memory/nchw_copy.h"

namespace trainer {

void NchwReshape::Setup(SetupContext& ctx, const Shape& out) {
  const Shape& in = ctx.Input(0);
  view_ = in == out || (!IsNhwc(in) && !IsNhwc(out));
  if (view_) return ctx.OutputView(0, 0, out);
  ctx.Output(0, out, ctx.InputType(0));
  if (IsNhwc(in) && IsNhwc(out)) {
    ctx.Scratch(static_cast<size_t>(in.Count()) * SizeOf(ctx.InputType(0)));
  }
}

void NchwReshape::Copy(const RunContext& run, const ConstTensor& from, const Tensor& to) const {
  if (!IsNhwc(to.shape)) return CopyToNchw(run.device(), from, to.data);
  if (!IsNhwc(from.shape)) return CopyFromNchw(run.device(), from.data, to);
  CopyToNchw(run.device(), from, run.Scratch().data());
  CopyFromNchw(run.device(), run.Scratch().data(), to);
}

void NchwReshape::Forward(const RunContext& run) const {
  if (!view_) Copy(run, run.Input(0), run.Output(0));
}

void NchwReshape::Backward(const RunContext& run) const {
  if (!view_) Copy(run, run.GradOutput(0), run.GradInput(0));
}

}  // namespace trainer
