#include "recurrent/recurrent.h"

#include <algorithm>

#include "shared/checks.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kRecurrentParam[] = "recurrent_param";

// Computes to[n][j] = cont[n] * from[n][j]; `to` may be `from`.
struct Continue {
  const float *cont, *from;
  float* to;
  int64_t width;
  HD void operator()(int64_t i) const { to[i] = cont[i / width] * from[i]; }
};

// Adds the static input's term, the same `count` numbers, to the gates of every step.
struct AddFixed {
  const float* fixed;
  float* gates;
  int64_t count;
  HD void operator()(int64_t i) const { gates[i] += fixed[i % count]; }
};

// Computes to[i] = the sum over all steps of from[t][i].
struct SumOverSteps {
  const float* from;
  float* to;
  int64_t steps, count;
  HD void operator()(int64_t i) const {
    float sum = 0;
    for (int64_t t = 0; t < steps; ++t) sum += from[t * count + i];
    to[i] = sum;
  }
};

// Copies `floats` floats on the device.
void CopyStates(const Device& device, const void* from, void* to, int64_t floats) {
  device.Copy(BlockCopy(sizeof(float), 1, floats, 0, 0), from, to);
}

}  // namespace

void RecurrentLayer::Setup(SetupContext& ctx) {
  RequireF32(ctx, spec_);
  ReadInputs(ctx);
  const caffe::RecurrentParameter& param = spec_.proto().recurrent_param();
  ctx.Param("weight_x", {GateWidth(), x_width_}, param.weight_filler());
  ctx.Param("bias", {GateWidth()}, param.bias_filler());
  if (has_static_) {
    ctx.Param("weight_static", {GateWidth(), static_width_}, param.weight_filler());
  }
  ctx.Param("weight_h", {GateWidth(), width_}, param.weight_filler());
  ctx.Output(0, {steps_, n_, width_});
  for (int s = 0; exposed_ && s < state_count_; ++s) ctx.Output(1 + s, {1, n_, width_});
  for (int i = 0; i < first_state_; ++i) ctx.SaveInput(i);
  ctx.NotDifferentiable(1);
  SetupMemory(ctx);
  SetupOutput(ctx);
}

void RecurrentLayer::Prepare(PrepareContext& ctx) {
  PrepareProducts(ctx);
  PrepareOutput(ctx);
  ctx.Scratch(static_cast<size_t>(floats_) * sizeof(float) + product_bytes_);
}

void RecurrentLayer::ReadInputs(SetupContext& ctx) {
  const caffe::RecurrentParameter& param = spec_.proto().recurrent_param();
  if (!param.has_num_output()) {
    spec_.Fail("num_output is not given; it is the size of the state");
  }
  if (param.num_output() < 1 || param.num_output() > INT32_MAX) {
    spec_.FailIn(
        kRecurrentParam, "num_output",
        Join("num_output is ", param.num_output(), "; it must be at least 1 and below 2^31"));
  }
  width_ = param.num_output();
  exposed_ = param.expose_hidden();
  CheckCounts(ctx);
  const int states = exposed_ ? state_count_ : 0;
  has_static_ = ctx.NumInputs() - states == 3;
  first_state_ = has_static_ ? 3 : 2;
  RequireRank(ctx, spec_, 0, 3, Shape::kMaxAxes, "(T, N, ...) of at least 3 axes");
  const Shape& x = ctx.Input(0);
  steps_ = x[0];
  n_ = x[1];
  x_width_ = x.Count(2);
  RequireShape(ctx, 1, {steps_, n_},
               "it says for each step and sequence whether the sequence continues");
  if (has_static_) {
    RequireRank(ctx, spec_, 2, 2, Shape::kMaxAxes, "(N, ...) of at least 2 axes");
    if (ctx.Input(2)[0] != n_) {
      RequireShape(ctx, 2, ctx.Input(2).With(0, n_), "it needs one item per sequence");
    }
    static_width_ = ctx.Input(2).Count(1);
  }
  for (int s = 0; s < states; ++s) {
    RequireShape(ctx, first_state_ + s, {1, n_, width_}, "it is a state before the first step");
  }
}

void RecurrentLayer::CheckCounts(SetupContext& ctx) const {
  const int states = exposed_ ? state_count_ : 0;
  const char* names = state_count_ == 2 ? "h and c" : "h";
  const int in = ctx.NumInputs() - states;
  if (in < 2 || in > 3) {
    spec_.Fail(Join("has ", ctx.NumInputs(), " bottoms; ",
                    exposed_
                        ? "with expose_hidden it needs x, cont, optionally a static input, then "
                        : "it needs x, cont and optionally a static input",
                    exposed_ ? names : "", exposed_ ? " before the first step" : ""));
  }
  if (ctx.NumOutputs() != 1 + states) {
    spec_.Fail(Join("has ", ctx.NumOutputs(), ctx.NumOutputs() == 1 ? " top; " : " tops; ",
                    exposed_ ? "with expose_hidden the tops are the output, then "
                             : "without expose_hidden the only top is the output",
                    exposed_ ? names : "", exposed_ ? " after the last step" : ""));
  }
}

void RecurrentLayer::RequireShape(SetupContext& ctx, int input, const Shape& shape,
                                  const char* what) const {
  if (ctx.Input(input) == shape) return;
  spec_.Fail("bottom",
             Join("bottom '", spec_.proto().bottom(input), "' has shape ", Dims(ctx.Input(input)),
                  ", but it must have ", Dims(shape), ": ", what),
             input);
}

int64_t RecurrentLayer::TakeScratch(int64_t floats) {
  constexpr int64_t kLine = 16;  // floats in 64 bytes
  const int64_t at = floats_;
  floats_ += (floats + kLine - 1) / kLine * kLine;
  return at;
}

void RecurrentLayer::SetupMemory(SetupContext& ctx) {
  macs_ = n_ * GateWidth() * (steps_ * (x_width_ + width_) + static_width_);
  const int64_t all_states = state_count_ * n_ * width_;
  ctx.Workspace(static_cast<size_t>(steps_ * n_ * GateWidth() + (steps_ + 1) * all_states) *
                sizeof(float));
  if (!exposed_) ctx.State(static_cast<size_t>(all_states) * sizeof(float));
  floats_ = 0;
  x_at_ = TakeScratch(IsNhwc(ctx.Input(0)) ? steps_ * n_ * x_width_ : 0);
  static_at_ = TakeScratch(has_static_ && IsNhwc(ctx.Input(2)) ? n_ * static_width_ : 0);
  fixed_at_ = TakeScratch(has_static_ ? n_ * GateWidth() : 0);
  hidden_at_ = TakeScratch((ctx.training() ? steps_ : 1) * n_ * width_);
  if (!ctx.training()) return;
  dgates_at_ = TakeScratch(steps_ * n_ * GateWidth());
  carry_at_ = TakeScratch(all_states);
}

std::unique_ptr<GemmPrimitive> RecurrentLayer::MakeProduct(PrepareContext& ctx,
                                                           const GemmDesc& desc) {
  auto product = ctx.device().NewGemm(desc);
  product_bytes_ = std::max(product_bytes_, product->ScratchBytes());
  for (const std::string& line : product->skipped_kernels()) {
    if (std::ranges::find(skipped_kernels_, line) == skipped_kernels_.end()) {
      skipped_kernels_.push_back(line);
    }
  }
  return product;
}

void RecurrentLayer::PrepareProducts(PrepareContext& ctx) {
  const int64_t g = GateWidth(), all = steps_ * n_;
  product_bytes_ = 0;
  skipped_kernels_.clear();
  project_x_ = MakeProduct(ctx, {.m = all, .n = g, .k = x_width_, .trans_b = true, .bias = true});
  project_hidden_ =
      MakeProduct(ctx, {.m = n_, .n = g, .k = width_, .trans_b = true, .accumulate = true});
  if (has_static_) {
    project_static_ = MakeProduct(ctx, {.m = n_, .n = g, .k = static_width_, .trans_b = true});
  }
  if (!ctx.training()) return;
  auto weight = [&](int64_t columns, int64_t rows) {
    return MakeProduct(ctx, {.m = g, .n = columns, .k = rows, .trans_a = true, .accumulate = true});
  };
  x_weight_gradient_ = weight(x_width_, all);
  hidden_weight_gradient_ = weight(width_, all);
  x_gradient_ = MakeProduct(ctx, {.m = all, .n = x_width_, .k = g});
  hidden_gradient_ = MakeProduct(ctx, {.m = n_, .n = width_, .k = g});
  if (!has_static_) return;
  static_weight_gradient_ = weight(static_width_, n_);
  static_gradient_ = MakeProduct(ctx, {.m = n_, .n = static_width_, .k = g});
}

// Returns an input's numbers in row-major order; copies them to `offset` in the scratch if memory
// has another order.
const float* RecurrentLayer::RowMajorInput(const RunContext& run, int input, int64_t offset) const {
  if (!IsNhwc(run.Input(input).shape)) return run.Input(input).f32();
  CopyToNchw(run.device(), run.Input(input), At(run, offset));
  return At(run, offset);
}

void RecurrentLayer::LoadFirstStates(const RunContext& run) {
  const int64_t count = n_ * width_;
  for (int s = 0; s < state_count_; ++s) {
    const void* from = exposed_ ? run.Input(first_state_ + s).data
                                : run.State().data() + s * count * sizeof(float);
    CopyStates(run.device(), from, State(run, s, 0), count);
  }
}

void RecurrentLayer::StoreLastStates(const RunContext& run) {
  const int64_t count = n_ * width_;
  for (int s = 0; s < state_count_; ++s) {
    void* to = exposed_ ? run.Output(1 + s).data : run.State().data() + s * count * sizeof(float);
    CopyStates(run.device(), State(run, s, steps_), to, count);
  }
}

void RecurrentLayer::Forward(const RunContext& run) {
  const Device& device = run.device();
  const std::span<std::byte> rest = Rest(run);
  const int64_t g = n_ * GateWidth();
  project_x_->Run(RowMajorInput(run, 0, x_at_), run.Param(0), run.Param(1), Gates(run, 0), rest);
  if (has_static_) {
    float* const fixed = At(run, fixed_at_);
    project_static_->Run(RowMajorInput(run, 2, static_at_), run.Param(2), nullptr, fixed, rest);
    ForEach(device, steps_ * g, AddFixed{fixed, Gates(run, 0), g});
  }
  LoadFirstStates(run);
  const float* const weight = run.Param(FirstOutputParam() - 1);
  float* const hidden = At(run, hidden_at_);
  for (int64_t t = 0; t < steps_; ++t) {
    ForEach(device, n_ * width_, Continue{Cont(run, t), State(run, 0, t), hidden, width_});
    project_hidden_->Run(hidden, weight, nullptr, Gates(run, t), rest);
    Step(run, t);
  }
  Output(run);
  StoreLastStates(run);
}

void RecurrentLayer::Backward(const RunContext& run) {
  const Device& device = run.device();
  const int64_t count = n_ * width_;
  const float* const dh = run.HasGradOutput(0) ? OutputBackward(run) : nullptr;
  for (int s = 0; s < state_count_; ++s) {
    if (exposed_ && run.HasGradOutput(1 + s)) {
      CopyStates(device, run.GradOutput(1 + s).data, Carry(run, s), count);
    } else {
      device.Zero(Carry(run, s), static_cast<size_t>(count) * sizeof(float));
    }
  }
  const float* const weight = run.Param(FirstOutputParam() - 1);
  for (int64_t t = steps_; t-- > 0;) {
    StepBackward(run, t, dh == nullptr ? nullptr : dh + t * count);
    hidden_gradient_->Run(DGates(run, t), weight, nullptr, Carry(run, 0), Rest(run));
    ForEach(device, count, Continue{Cont(run, t), Carry(run, 0), Carry(run, 0), width_});
  }
  for (int s = 0; exposed_ && s < state_count_; ++s) {
    const Tensor& grad = run.GradInput(first_state_ + s);
    if (grad.data != nullptr) CopyStates(device, Carry(run, s), grad.data, count);
  }
  BackwardHidden(run);
  BackwardX(run);
  if (has_static_) BackwardStatic(run);
}

void RecurrentLayer::BackwardHidden(const RunContext& run) {
  float* const gradient = run.GradParam(FirstOutputParam() - 1);
  if (gradient == nullptr) return;
  float* const hidden = At(run, hidden_at_);
  ForEach(run.device(), steps_ * n_ * width_,
          Continue{Cont(run, 0), State(run, 0, 0), hidden, width_});
  hidden_weight_gradient_->Run(DGates(run, 0), hidden, nullptr, gradient, Rest(run));
}

void RecurrentLayer::BackwardX(const RunContext& run) {
  const float* const dgates = DGates(run, 0);
  if (run.GradParam(0) != nullptr) {
    x_weight_gradient_->Run(dgates, RowMajorInput(run, 0, x_at_), nullptr, run.GradParam(0),
                            Rest(run));
  }
  if (run.GradParam(1) != nullptr) {
    const Shape all{steps_ * n_, GateWidth()};
    run.device().AddChannelSums(ChannelSumsDesc::Of(all, 1), ConstTensor(dgates, all), nullptr,
                                run.GradParam(1));
  }
  if (!run.NeedsGradInput(0)) return;
  const bool permuted = IsNhwc(run.Input(0).shape);
  float* const dx = permuted ? At(run, x_at_) : run.GradInput(0).f32();
  x_gradient_->Run(dgates, run.Param(0), nullptr, dx, Rest(run));
  if (permuted) CopyFromNchw(run.device(), dx, run.GradInput(0));
}

void RecurrentLayer::BackwardStatic(const RunContext& run) {
  float* const sum = At(run, fixed_at_);
  ForEach(run.device(), n_ * GateWidth(),
          SumOverSteps{DGates(run, 0), sum, steps_, n_ * GateWidth()});
  if (run.GradParam(2) != nullptr) {
    static_weight_gradient_->Run(sum, RowMajorInput(run, 2, static_at_), nullptr, run.GradParam(2),
                                 Rest(run));
  }
  if (!run.NeedsGradInput(2)) return;
  const bool permuted = IsNhwc(run.Input(2).shape);
  float* const ds = permuted ? At(run, static_at_) : run.GradInput(2).f32();
  static_gradient_->Run(sum, run.Param(2), nullptr, ds, Rest(run));
  if (permuted) CopyFromNchw(run.device(), ds, run.GradInput(2));
}

}  // namespace trainer
