#include "batch_norm_forms.h"
#include "batch_norm_math.h"
#include "checks.h"
#include "plain_relu.h"
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
    pixels_ = WorkChunks(in);
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
    const Device& device = run.device();
    const Channels at = Place(run);
    if (stored_) {
      ForEach(device, pixels_.rows.length,
              StoredMoments{run.Param(0), run.Param(1), run.Param(2), at.mean, at.inverse});
    } else {
      BatchMoments(run, at);
      if (run.phase() == caffe::TRAIN) UpdateStored(run, at.mean, at.inverse);
    }
    ForEach(device, pixels_.rows.length, InverseRoot{at.inverse, eps_});
    ForEach(device, pixels_.rows.length, FactorOf{at.inverse, Affine(run), at.factor});
    WriteAll(run, at);
  }

  bool Recomputes() const override { return true; }
  void Recompute(RunContext& run) override { WriteAll(run, Place(run)); }

  void Backward(RunContext& run) override {
    WithType(run.GradOut(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* dy = run.GradOut(0).As<T>();
      if (relu_ && sum_) return BackwardSum<T>(run, WherePositive<T>{dy, run.Out(0).As<T>()});
      if (sum_) return BackwardSum<T>(run, Whole<T>{dy});
      if (relu_) return BackwardFromInput<T>(run, WhereNormalPositive<T>{dy, Normal<T>(run)});
      if (KeepsInput()) return BackwardFromInput<T>(run, Whole<T>{dy});
      const Whole<T> g{dy};
      BackwardWith<T>(run, g, g, FromOutput<T>{run.Out(0).As<T>()});
    });
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
    const auto channels = static_cast<size_t>(pixels_.rows.length);
    plan.Workspace(3 * channels * sizeof(float));
    plan.Scratch((static_cast<size_t>(PairFloats(pixels_)) + 2 * channels) * sizeof(float));
  }

  bool AbsorbScale(const LayerSpec& next) {
    const caffe::ScaleParameter& param = next.proto().scale_param();
    if (next.proto().bottom_size() != 1 || param.axis() != 1 || param.num_axes() != 1) return false;
    affine_step_ = 0;
    return true;
  }

  // Workspace: the mean, 1 / sqrt(variance + eps), and that times the scale.
  struct Channels {
    float *mean, *inverse, *factor;
  };
  Channels Place(const RunContext& run) const {
    auto* const mean = reinterpret_cast<float*>(run.Workspace().data());
    return {mean, mean + pixels_.rows.length, mean + 2 * pixels_.rows.length};
  }
  // Scratch: two means per channel, then the sums of the chunks.
  float* Means(const RunContext& run) const {
    return reinterpret_cast<float*>(run.Scratch().data());
  }
  float* Sums(const RunContext& run) const { return Means(run) + 2 * pixels_.rows.length; }

  // The learned scale and shift, own or those of a Scale layer, and their gradients.
  const RunContext* AffineOwner(const RunContext& run) const {
    return affine_step_ >= 0 ? &run.Absorbed(affine_step_) : &run;
  }
  int FirstAffine() const { return affine_step_ >= 0 ? 0 : 3; }
  ChannelAffine Affine(const RunContext& run) const {
    const RunContext* owner = AffineOwner(run);
    return {owner->ParamIf(FirstAffine()), owner->ParamIf(FirstAffine() + 1)};
  }

  void BatchMoments(const RunContext& run, const Channels& at) const {
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* x = run.In(0).As<T>();
      SumPairs(run.device(), pixels_, Deviations<T>{x}, Sums(run));
      ForEach(run.device(), pixels_.rows.length,
              MomentsOfChunks<T>{x, Sums(run), pixels_, at.mean, at.inverse});
    });
  }
  void UpdateStored(const RunContext& run, const float* mean, const float* variance) const {
    const float keep = spec_.proto().batch_norm_param().moving_average_fraction();
    const auto pixels = static_cast<float>(pixels_.rows.count);
    const float unbias = pixels_.rows.count > 1 ? pixels / (pixels - 1) : 1.0f;
    if (learned_) {
      ForEach(
          run.device(), pixels_.rows.length,
          UpdateAverages{run.Param(0), run.Param(1), run.Param(2), mean, variance, keep, unbias});
      return ForEach(run.device(), 1, SetToOne{run.Param(2)});
    }
    ForEach(run.device(), pixels_.rows.length,
            UpdateSums{run.Param(0), run.Param(1), mean, variance, keep, unbias});
    ForEach(run.device(), 1, UpdateFactor{run.Param(2), keep});
  }

  template <class T>
  Normalize<T, false> Normal(const RunContext& run) const {
    const Channels at = Place(run);
    return {run.In(0).As<T>(), at.mean, at.factor, Affine(run).shift};
  }
  void WriteAll(const RunContext& run, const Channels& at) const {
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      relu_ ? Write<T, true>(run, at) : Write<T, false>(run, at);
    });
  }
  template <class T, bool kRelu>
  void Write(const RunContext& run, const Channels& at) const {
    const T* x = run.In(0).As<T>();
    T* y = run.Out(0).As<T>();
    if (sum_) {
      const T* other = run.In(1).As<T>();
      return MapInPixels(run.device(), pixels_, NormalizeAndAdd<T, kRelu>{Normal<T>(run), other}, y,
                         y != x && y != other);
    }
    MapInPixels(run.device(), pixels_,
                Normalize<T, kRelu>{x, at.mean, at.factor, Affine(run).shift}, y, y != x);
  }

  template <class T, class G>
  void BackwardFromInput(RunContext& run, const G& g) const {
    BackwardWith<T>(run, g, g, ZFromInput<T>(run));
  }
  template <class T>
  FromInput<T> ZFromInput(const RunContext& run) const {
    const Channels at = Place(run);
    return {run.In(0).As<T>(), at.mean, at.inverse};
  }

  // The gradient of the other summand serves for ours, too: it is written by the first pass.
  template <class T, class G>
  void BackwardSum(RunContext& run, const G& g) const {
    if (!run.WantsGradIn(1)) return BackwardFromInput<T>(run, g);
    T* const to = run.GradIn(1).As<T>();
    const Whole<T> written{to};
    if (!relu_ && to == run.GradOut(0).data) return BackwardFromInput<T>(run, written);
    if (NeedsSums(run)) {
      return BackwardWith<T>(run, Kept<T, G>{g, to}, written, ZFromInput<T>(run));
    }
    MapInPixels(run.device(), pixels_, g, to, to != run.GradOut(0).data);
    BackwardFromInput<T>(run, written);
  }

  bool NeedsSums(const RunContext& run) const {
    const RunContext* owner = AffineOwner(run);
    return !stored_ || owner->GradParamIf(FirstAffine()) != nullptr ||
           owner->GradParamIf(FirstAffine() + 1) != nullptr;
  }

  // first: what a pass over all elements for the sums takes as g, where there is one.
  template <class T, class First, class G, class Z>
  void BackwardWith(RunContext& run, const First& first, const G& g, const Z& z) const {
    const Device& device = run.device();
    const int64_t channels = pixels_.rows.length;
    const float* const factor = Place(run).factor;
    float *const mean_g = Means(run), *const mean_gz = mean_g + channels;
    const RunContext* owner = AffineOwner(run);
    float* const to_scale = owner->GradParamIf(FirstAffine());
    float* const to_shift = owner->GradParamIf(FirstAffine() + 1);
    if (NeedsSums(run)) {
      SumPairs(device, pixels_, GradientSums<First, Z>{first, z}, Sums(run));
      ForEach(device, channels, MeansOfChunks{Sums(run), pixels_, mean_g, mean_gz});
    }
    const auto pixels = static_cast<float>(pixels_.rows.count);
    if (to_scale != nullptr) ForEach(device, channels, AddProduct{mean_gz, pixels, to_scale});
    if (to_shift != nullptr) ForEach(device, channels, AddProduct{mean_g, pixels, to_shift});
    if (!run.WantsGradIn(0)) return;
    T* const dx = run.GradIn(0).As<T>();
    const bool fresh = dx != run.GradOut(0).data;
    if (stored_) return MapInPixels(device, pixels_, ScaledGradient<G>{g, factor}, dx, fresh);
    MapInPixels(device, pixels_, InputGradient<G, Z>{g, z, factor, mean_g, mean_gz}, dx, fresh);
  }

  LayerSpec spec_;
  PixelChunks pixels_;
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
