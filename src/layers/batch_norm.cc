#include "batch_norm_forms.h"
#include "checks.h"
#include "norm_sums.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

template <class T>
struct SquaredDeviation {
  const T* x;
  const float* mean;
  HD float operator()(int64_t at, int64_t c, int64_t) const {
    const float d = Load(x[at]) - mean[c];
    return d * d;
  }
};

// mean[c] = the sum over chunks, divided by the number of pixels.
struct MeanOverChunks {
  const float* sums;
  int64_t chunks, channels;
  double pixels;
  float* mean;
  HD void operator()(int64_t c) const {
    double sum = 0;
    for (int64_t k = 0; k < chunks; ++k) sum += sums[k * channels + c];
    mean[c] = static_cast<float>(sum / pixels);
  }
};

// scale and bias are null where nothing is learned.
template <class T>
struct Standardize {
  const T* x;
  const float *mean, *inverse, *scale, *bias;
  T* y;
  HD void operator()(int64_t at, int64_t c, int64_t) const {
    const float z = (Load(x[at]) - mean[c]) * inverse[c];
    Store(y[at], scale == nullptr ? z : z * scale[c] + bias[c]);
  }
};

// The standardized z: the output y, or from x where y is more than that.
template <class T>
struct FromOutput {
  const T* y;
  HD float operator()(int64_t at, int64_t) const { return Load(y[at]); }
};
template <class T>
struct FromInput {
  const T* x;
  const float *mean, *inverse;
  HD float operator()(int64_t at, int64_t c) const { return (Load(x[at]) - mean[c]) * inverse[c]; }
};

template <class T, class Z>
struct ProductWith {
  const T* dy;
  Z z;
  HD float operator()(int64_t at, int64_t c, int64_t) const { return Load(dy[at]) * z(at, c); }
};

// dx = (dy - mean dy - z * mean (dy * z)) * scale / sqrt(var + eps)
template <class T, class Z>
struct StandardizeGradient {
  const T* dy;
  Z z;
  const float *inverse, *scale, *mean_dy, *mean_dyz;
  T* dx;
  HD void operator()(int64_t at, int64_t c, int64_t) const {
    const float own = scale == nullptr ? inverse[c] : inverse[c] * scale[c];
    Store(dx[at], (Load(dy[at]) - mean_dy[c] - z(at, c) * mean_dyz[c]) * own);
  }
};
// Stored moments are constants.
template <class T>
struct ScaledGradient {
  const T* dy;
  const float *inverse, *scale;
  T* dx;
  HD void operator()(int64_t at, int64_t c, int64_t) const {
    Store(dx[at], Load(dy[at]) * (scale == nullptr ? inverse[c] : inverse[c] * scale[c]));
  }
};

struct AddProduct {
  const float* mean;
  float pixels;
  float* to;
  HD void operator()(int64_t c) const { to[c] += mean[c] * pixels; }
};

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
    sums_ = WorkChunks(in);
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
    if (learned_) {
      plan.KeepInput(0);
    } else {
      if (!stored_) plan.KeepOutput(0);
      plan.AllowInPlace();
    }
    const auto channels = static_cast<size_t>(in[1]);
    plan.Workspace(2 * channels * sizeof(float));
    plan.Scratch((static_cast<size_t>(sums_.chunks) + 2) * channels * sizeof(float));
  }

  void Forward(RunContext& run) override {
    const Device& device = run.device();
    const int64_t channels = sums_.rows.length;
    float *const inverse = Workspace(run), *const mean = inverse + channels;
    if (stored_) {
      ForEach(device, channels,
              StoredMoments{run.Param(0), run.Param(1), run.Param(2), mean, inverse});
    } else {
      BatchMoments(run, mean, inverse);
    }
    if (!stored_ && run.phase() == caffe::TRAIN) UpdateStored(run, mean, inverse);
    ForEach(device, channels, InverseRoot{inverse, eps_});
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEachPixel(device, sums_,
                   Standardize<T>{run.In(0).As<T>(), mean, inverse, run.ParamIf(3), run.ParamIf(4),
                                  run.Out(0).As<T>()});
    });
  }

  void Backward(RunContext& run) override {
    WithType(run.GradOut(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      if (learned_) {
        const float* const inverse = Workspace(run);
        BackwardWith<T>(run, FromInput<T>{run.In(0).As<T>(), inverse + sums_.rows.length, inverse});
      } else {
        BackwardWith<T>(run, FromOutput<T>{run.Out(0).As<T>()});
      }
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

  // Scratch: two arrays of channels, then the partial sums. Workspace: 1 / sqrt(var + eps), then
  // the mean.
  static float* Scratch(const RunContext& run) {
    return reinterpret_cast<float*>(run.Scratch().data());
  }
  static float* Workspace(const RunContext& run) {
    return reinterpret_cast<float*>(run.Workspace().data());
  }

  template <class F>
  void Mean(const RunContext& run, F f, float* mean) const {
    float* const partial = Scratch(run) + 2 * sums_.rows.length;
    SumChunks(run.device(), sums_, f, partial);
    ForEach(run.device(), sums_.rows.length,
            MeanOverChunks{partial, sums_.chunks, sums_.rows.length,
                           static_cast<double>(std::max<int64_t>(1, sums_.rows.count)), mean});
  }
  void BatchMoments(const RunContext& run, float* mean, float* variance) const {
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* x = run.In(0).As<T>();
      Mean(run, ValueOf<T>{x}, mean);
      Mean(run, SquaredDeviation<T>{x, mean}, variance);
    });
  }
  void UpdateStored(const RunContext& run, const float* mean, const float* variance) const {
    const float keep = spec_.proto().batch_norm_param().moving_average_fraction();
    const auto pixels = static_cast<float>(sums_.rows.count);
    const float unbias = sums_.rows.count > 1 ? pixels / (pixels - 1) : 1.0f;
    if (learned_) {
      ForEach(
          run.device(), sums_.rows.length,
          UpdateAverages{run.Param(0), run.Param(1), run.Param(2), mean, variance, keep, unbias});
      return ForEach(run.device(), 1, SetToOne{run.Param(2)});
    }
    ForEach(run.device(), sums_.rows.length,
            UpdateSums{run.Param(0), run.Param(1), mean, variance, keep, unbias});
    ForEach(run.device(), 1, UpdateFactor{run.Param(2), keep});
  }

  template <class T, class Z>
  void BackwardWith(RunContext& run, const Z& z) const {
    const Device& device = run.device();
    const int64_t channels = sums_.rows.length;
    const float *const inverse = Workspace(run), *const scale = run.ParamIf(3);
    const T* dy = run.GradOut(0).As<T>();
    float *const mean_dy = Scratch(run), *const mean_dyz = mean_dy + channels;
    float *const to_scale = run.GradParamIf(3), *const to_bias = run.GradParamIf(4);
    if (!stored_ || to_scale != nullptr || to_bias != nullptr) {
      Mean(run, ValueOf<T>{dy}, mean_dy);
      Mean(run, ProductWith<T, Z>{dy, z}, mean_dyz);
    }
    const auto pixels = static_cast<float>(sums_.rows.count);
    if (to_scale != nullptr) ForEach(device, channels, AddProduct{mean_dyz, pixels, to_scale});
    if (to_bias != nullptr) ForEach(device, channels, AddProduct{mean_dy, pixels, to_bias});
    if (!run.WantsGradIn(0)) return;
    T* const dx = run.GradIn(0).As<T>();
    if (stored_) {
      return ForEachPixel(device, sums_, ScaledGradient<T>{dy, inverse, scale, dx});
    }
    ForEachPixel(device, sums_,
                 StandardizeGradient<T, Z>{dy, z, inverse, scale, mean_dy, mean_dyz, dx});
  }

  LayerSpec spec_;
  PixelChunks sums_;
  float eps_ = 0;
  bool stored_ = false, learned_ = false;
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
             "loads files without scale and bias.",
     .param = "batch_norm_param"});

}  // namespace
}  // namespace trainer
