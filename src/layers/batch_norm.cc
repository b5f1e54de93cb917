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

// The stored sums forget the past by `keep` per batch; the variance is made unbiased.
struct UpdateSums {
  float *mean_sum, *variance_sum;
  const float *mean, *variance;
  float keep, unbias;
  HD void operator()(int64_t c) const {
    mean_sum[c] = mean_sum[c] * keep + mean[c];
    variance_sum[c] = variance_sum[c] * keep + variance[c] * unbias;
  }
};
struct UpdateFactor {
  float* factor;
  float keep;
  HD void operator()(int64_t) const { *factor = *factor * keep + 1; }
};

// The stored sums divided by the sum of their weights; 0 where nothing was summed yet.
struct StoredMoments {
  const float *mean_sum, *variance_sum, *factor;
  float *mean, *variance;
  HD void operator()(int64_t c) const {
    const float scale = *factor == 0 ? 0.0f : 1 / *factor;
    mean[c] = mean_sum[c] * scale;
    variance[c] = variance_sum[c] * scale;
  }
};

struct InverseRoot {
  float* variance;
  float eps;
  HD void operator()(int64_t c) const { variance[c] = 1 / sqrtf(variance[c] + eps); }
};

template <class T>
struct Standardize {
  const T* x;
  const float *mean, *inverse;
  T* y;
  HD void operator()(int64_t at, int64_t c, int64_t) const {
    Store(y[at], (Load(x[at]) - mean[c]) * inverse[c]);
  }
};

// dx = (dy - mean dy - y * mean (dy * y)) / sqrt(var + eps); stored moments are constants.
template <class T>
struct StandardizeGradient {
  const T *y, *dy;
  const float *inverse, *mean_dy, *mean_dyy;
  T* dx;
  HD void operator()(int64_t at, int64_t c, int64_t) const {
    Store(dx[at], (Load(dy[at]) - mean_dy[c] - Load(y[at]) * mean_dyy[c]) * inverse[c]);
  }
};
template <class T>
struct ScaledGradient {
  const T* dy;
  const float* inverse;
  T* dx;
  HD void operator()(int64_t at, int64_t c, int64_t) const {
    Store(dx[at], Load(dy[at]) * inverse[c]);
  }
};

class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const LayerSpec& spec) : spec_(spec) {}

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
    plan.Out(0, in, plan.InType(0));
    if (!stored_) plan.KeepOutput(0);
    plan.AllowInPlace();
    const auto channels = static_cast<size_t>(in[1]);
    plan.Workspace(channels * sizeof(float));
    plan.Scratch((static_cast<size_t>(sums_.chunks) + 2) * channels * sizeof(float));
  }

  void Forward(RunContext& run) override {
    const Device& device = run.device();
    const int64_t channels = sums_.rows.length;
    float *const mean = Scratch(run), *const inverse = Inverse(run);
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    if (stored_) {
      ForEach(device, channels,
              StoredMoments{run.Param(0), run.Param(1), run.Param(2), mean, inverse});
    } else {
      BatchMoments(run, mean, inverse);
    }
    if (!stored_ && run.phase() == caffe::TRAIN) UpdateStored(run, mean, inverse);
    ForEach(device, channels, InverseRoot{inverse, param.eps()});
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForEachPixel(device, sums_,
                   Standardize<T>{run.In(0).As<T>(), mean, inverse, run.Out(0).As<T>()});
    });
  }

  void Backward(RunContext& run) override {
    if (!run.WantsGradIn(0)) return;
    const Device& device = run.device();
    float *const mean_dy = Scratch(run), *const mean_dyy = mean_dy + sums_.rows.length;
    WithType(run.GradOut(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* dy = run.GradOut(0).As<T>();
      T* dx = run.GradIn(0).As<T>();
      if (stored_) return ForEachPixel(device, sums_, ScaledGradient<T>{dy, Inverse(run), dx});
      const T* y = run.Out(0).As<T>();
      Mean(run, ValueOf<T>{dy}, mean_dy);
      Mean(run, ProductOf<T>{dy, y}, mean_dyy);
      ForEachPixel(device, sums_,
                   StandardizeGradient<T>{y, dy, Inverse(run), mean_dy, mean_dyy, dx});
    });
  }

 private:
  void CheckFields() const {
    const caffe::BatchNormParameter& param = spec_.proto().batch_norm_param();
    for (int i = 0; i < spec_.proto().param_size(); ++i) {
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
    if (param.scale_bias()) RefuseLearned("scale_bias");
    if (param.has_scale_filler()) RefuseLearned("scale_filler");
    if (param.has_bias_filler()) RefuseLearned("bias_filler");
  }
  [[noreturn]] void RefuseLearned(const char* field) const {
    spec_.FailIn("batch_norm_param", field,
                 Join(field,
                      ": a BatchNorm here has no learned factor and offset; remove the "
                      "field and add a Scale layer with bias_term: true"));
  }

  // Scratch: two arrays of channels, then the partial sums. Workspace: 1 / sqrt(var + eps).
  static float* Scratch(const RunContext& run) {
    return reinterpret_cast<float*>(run.Scratch().data());
  }
  static float* Inverse(const RunContext& run) {
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
    ForEach(run.device(), sums_.rows.length,
            UpdateSums{run.Param(0), run.Param(1), mean, variance, keep, unbias});
    ForEach(run.device(), 1, UpdateFactor{run.Param(2), keep});
  }

  LayerSpec spec_;
  PixelChunks sums_;
  bool stored_ = false;
};

const RegisterLayer<BatchNorm> kBatchNorm(
    "BatchNorm",
    {.text = "y = (x - mean) / sqrt(variance + eps), per channel. May work in place.\n"
             "bottom (N, C, ...). In training the moments are those of the batch, and averages of "
             "them are stored: (sum of means (C), sum of variances (C), sum of weights (1)), the "
             "past weighted by moving_average_fraction per batch. In testing, and with "
             "use_global_stats, the moments are the stored ones. Nothing is learned: a Scale "
             "layer with bias_term usually follows.",
     .param = "batch_norm_param"});

}  // namespace
}  // namespace trainer
