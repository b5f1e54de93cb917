#include "common/reorder.h"

#include "trainer/backend/layout.h"

namespace trainer {

void Reorder::Describe(DescribeContext& plan, const Shape& out) {
  const Shape& in = plan.In(0);
  view_ = in == out || (!IsPermuted(in) && !IsPermuted(out));
  if (view_) return plan.OutIsView(0, 0, out);
  plan.Out(0, out, plan.InType(0));
  if (IsPermuted(in) && IsPermuted(out)) {
    plan.Scratch(static_cast<size_t>(in.Count()) * SizeOf(plan.InType(0)));
  }
}

void Reorder::Copy(const RunContext& run, const ConstTensor& from, const Tensor& to) const {
  if (!IsPermuted(to.shape)) return CopyToPlain(run.device(), from, to.data);
  if (!IsPermuted(from.shape)) return CopyFromPlain(run.device(), from.data, to);
  CopyToPlain(run.device(), from, run.Scratch().data());
  CopyFromPlain(run.device(), run.Scratch().data(), to);
}

void Reorder::Forward(const RunContext& run) const {
  if (!view_) Copy(run, run.In(0), run.Out(0));
}

void Reorder::Backward(const RunContext& run) const {
  if (!view_) Copy(run, run.GradOut(0), run.GradIn(0));
}

}  // namespace trainer
