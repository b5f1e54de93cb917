#include "batch_norm_forms.h"
#include "checks.h"
#include "plain_relu.h"
#include "trainer/backend/map.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

// A sum of two inputs without factors.
bool IsPlainSum(const LayerSpec& next) {
  const caffe::EltwiseParameter& param = next.proto().eltwise_param();
  return param.operation() == caffe::EltwiseParameter::SUM && param.coeff_size() == 0 &&
         next.proto().bottom_size() == 2;
}

class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const LayerSpec& spec) : spec_(spec) {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    learned_ = LearnsScaleAndBias(param);
    eps_ = learned_ ? std::max(param.eps(), 1e-5f) : param.eps();
  }

  void Plan(PlanContext& plan) override {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    RequireRank(plan, spec_, 0, 2, Shape::kMaxAxes, "(N, C, ...)");
    CheckFields();
    const Shape& in = plan.In(0);
    stored_ = param.has_use_global_stats() ? param.use_global_stats() : plan.phase() == caffe::TEST;
    channels_ = in[1];
    pixels_ = channels_ > 0 ? in.Count() / channels_ : 0;
    const ParamOptions fixed = {.layout = {}, .default_lr_mult = 0, .default_decay_mult = 0};
    plan.Param("mean", {in[1]}, {}, fixed);
    plan.Param("variance", {in[1]}, {}, fixed);
    plan.Param("factor", {1}, {}, fixed);
    if (learned_) {
      caffe::FillerParameter scale = param.scale_filler();
      if (!param.has_scale_filler()) scale.set_value(1);
      plan.Param("scale", {in[1]}, scale);
      plan.Param("bias", {in[1]}, param.bias_filler());
    }
    plan.Out(0, in, plan.InType(0));
    PlanMemory(plan);
  }

  bool Absorb(const LayerSpec& next) override {
    if (relu_) return false;
    const bool first = affine_step_ < 0 && !sum_;
    if (next.type() == "Scale" && first && !learned_) return AbsorbScale(next);
    if (next.type() == "Eltwise" && !sum_) return sum_ = IsPlainSum(next);
    return relu_ = IsPlainRelu(next);
  }

  void Forward(RunContext& run) override {
    const BatchNormStats at = norm_->StatsIn(run.Workspace());
    if (stored_) {
      ForEach(run.device(), channels_,
              StoredMoments{run.Param(0), run.Param(1), run.Param(2), at.mean, at.inverse});
    } else {
      norm_->Moments(run.In(0), at, run.Scratch());
      if (run.phase() == caffe::TRAIN && !run.repeats()) UpdateStored(run, at.mean, at.inverse);
    }
    norm_->Forward(Tensors(run), at);
  }

  bool Recomputes() const override { return true; }
  void Recompute(RunContext& run) override {
    norm_->Recompute(Tensors(run), norm_->StatsIn(run.Workspace()));
  }

  void Backward(RunContext& run) override {
    const RunContext& owner = AffineOwner(run);
    BatchNormGradients in = {.x = run.In(0),
                             .y = run.Out(0),
                             .dy = run.GradOut(0),
                             .scale = owner.ParamIf(FirstAffine()),
                             .shift = owner.ParamIf(FirstAffine() + 1),
                             .dx = run.GradIn(0),
                             .dother = {},
                             .dscale = owner.GradParamIf(FirstAffine()),
                             .dshift = owner.GradParamIf(FirstAffine() + 1)};
    if (sum_) in.dother = run.GradIn(1);
    norm_->Backward(in, norm_->StatsIn(run.Workspace()), run.Scratch());
  }

 private:
  void CheckFields() const {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    for (int i = 0; i < std::min(3, spec_.proto().param_size()); ++i) {
      if (spec_.proto().param(i).lr_mult() == 0) continue;
      spec_.Fail("param",
                 Join("lr_mult is ", spec_.proto().param(i).lr_mult(),
                      ", but the averages of a BatchNorm are not learned: give lr_mult: 0, or "
                      "remove `param`"),
                 i);
    }
    if (!(param.eps() >= 0)) {
      spec_.FailIn("batch_norm_param", "eps",
                   Join("eps is ", param.eps(), "; it must not be negative"));
    }
    const float keep = param.moving_average_fraction();
    if (!(keep >= 0 && keep <= 1)) {
      spec_.FailIn("batch_norm_param", "moving_average_fraction",
                   Join("moving_average_fraction is ", keep, "; it must be within [0, 1]"));
    }
  }

  // Whether z is more than the output without a factor and an offset.
  bool KeepsInput() const { return learned_ || affine_step_ >= 0 || sum_ || relu_; }

  void PlanMemory(PlanContext& plan) {
    if (KeepsInput()) {
      plan.KeepInput(0);
      if (sum_ && relu_) plan.KeepOutput(0);
      plan.AllowGradInPlace(sum_ ? 1 : 0);
    } else {
      if (!stored_) plan.KeepOutput(0);
      plan.AllowInPlace();
    }
    norm_ = plan.device().MakeBatchNorm({.shape = plan.In(0),
                                         .eps = eps_,
                                         .stored = stored_,
                                         .other = sum_,
                                         .relu = relu_,
                                         .from_output = !KeepsInput(),
                                         .dtype = plan.InType(0)});
    plan.Workspace(norm_->WorkspaceBytes());
    plan.Scratch(norm_->ScratchBytes());
  }

  bool AbsorbScale(const LayerSpec& next) {
    const caffe::ScaleParameter& param = next.proto().scale_param();
    if (next.proto().bottom_size() != 1 || param.axis() != 1 || param.num_axes() != 1) return false;
    affine_step_ = 0;
    return true;
  }

  // The learned scale and shift, own or those of a Scale layer, and their gradients.
  const RunContext& AffineOwner(const RunContext& run) const {
    return affine_step_ >= 0 ? run.Absorbed(affine_step_) : run;
  }
  int FirstAffine() const { return affine_step_ >= 0 ? 0 : 3; }

  BatchNormTensors Tensors(const RunContext& run) const {
    const RunContext& owner = AffineOwner(run);
    return {.x = run.In(0),
            .other = sum_ ? run.In(1) : ConstTensor(),
            .scale = owner.ParamIf(FirstAffine()),
            .shift = owner.ParamIf(FirstAffine() + 1),
            .y = run.Out(0)};
  }

  void UpdateStored(const RunContext& run, const float* mean, const float* variance) const {
    const float keep = spec_.proto().batch_norm_param().moving_average_fraction();
    const auto pixels = static_cast<float>(pixels_);
    const float unbias = pixels_ > 1 ? pixels / (pixels - 1) : 1.0f;
    if (learned_) {
      ForEach(
          run.device(), channels_,
          UpdateAverages{run.Param(0), run.Param(1), run.Param(2), mean, variance, keep, unbias});
      return ForEach(run.device(), 1, SetToOne{run.Param(2)});
    }
    ForEach(run.device(), channels_,
            UpdateSums{run.Param(0), run.Param(1), mean, variance, keep, unbias});
    ForEach(run.device(), 1, UpdateFactor{run.Param(2), keep});
  }

  LayerSpec spec_;
  std::unique_ptr<BatchNormPlan> norm_;
  int64_t channels_ = 0, pixels_ = 0;  // pixels: the elements of a channel
  float eps_ = 0;
  bool stored_ = false, learned_ = false;
  // What it took over: a Scale, the number of its context; a sum with input 1; a ReLU.
  int affine_step_ = -1;
  bool sum_ = false, relu_ = false;
};

const RegisterLayer<BatchNorm> kBatchNorm(
    "BatchNorm",
    {.text = "y = (x - mean) / sqrt(variance + eps), per channel. May work in place.\n"
             "bottom (N, C, ...). In training the moments are those of the batch, and averages of "
             "them are stored: (sum of means (C), sum of variances (C), sum of weights (1)), the "
             "past weighted by moving_average_fraction per batch. In testing, and with "
             "use_global_stats, the moments are the stored ones. Nothing is learned: a Scale "
             "layer with bias_term usually follows.\n"
             "With scale_bias, or one of the two fillers, y * scale + bias with a scale and a bias "
             "per channel that are learned, 1 and 0 at first: the form of NVIDIA Caffe. It stores "
             "(mean (C), variance (C), 1, scale (C), bias (C)), eps is 1e-5 at least, and it also "
             "loads files without scale and bias. Intel Caffe's filler is the start of the factor "
             "of the Scale layer behind; without one it is another word for scale_filler.",
     .param = "batch_norm_param",
     .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
