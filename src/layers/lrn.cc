#include "checks.h"
#include "lrn_across.h"
#include "trainer/backend/map_rows.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

template <class T>
struct Square {
  const T* x;
  HD float operator()(int64_t at) const { return Load(x[at]) * Load(x[at]); }
};
struct Value {
  const float* x;
  HD float operator()(int64_t at) const { return x[at]; }
};

// One row per pixel: sum[c] = f(c - half) + ... + f(c + half), nothing beyond the channels.
template <class F>
struct SumAcross {
  F f;
  float* sum;
  int64_t channels, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * channels;
    row.ForEach([&](int64_t c) {
      const int64_t first = c < half ? 0 : c - half;
      const int64_t last = c + half < channels ? c + half : channels - 1;
      float s = 0;
      for (int64_t i = first; i <= last; ++i) s += f(at + i);
      sum[at + c] = s;
    });
  }
};

// One row per pixel: the sum over the pixels at most `half` away along both axes, per channel.
template <class F>
struct SumWithin {
  F f;
  float* sum;
  int64_t channels, height, width, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t to = row.index * channels;
    const int64_t w = row.index % width, h = row.index / width % height;
    const int64_t corner = (row.index - h * width - w) * channels;
    const int64_t top = h < half ? 0 : h - half, left = w < half ? 0 : w - half;
    const int64_t bottom = h + half < height ? h + half : height - 1;
    const int64_t right = w + half < width ? w + half : width - 1;
    row.ForEach([&](int64_t c) { sum[to + c] = 0; });
    for (int64_t y = top; y <= bottom; ++y) {
      for (int64_t x = left; x <= right; ++x) {
        const int64_t from = corner + (y * width + x) * channels;
        row.ForEach([&](int64_t c) { sum[to + c] += f(from + c); });
      }
    }
  }
};

// base = k + factor * (sum of squares), in place; y = x * base^-beta
template <class T, class Power>
struct Normalize {
  const T* x;
  float* base;
  T* y;
  float k, factor;
  Power power;
  HD void operator()(int64_t i) const {
    const float s = k + factor * base[i];
    base[i] = s;
    Store(y[i], Load(x[i]) * power.Norm(s));
  }
};

// What a place adds to the gradients of its neighbours, but for their own x: dy * x *
// base^(-beta-1)
template <class T, class Power>
struct Share {
  const T *x, *dy;
  const float* base;
  float* out;
  Power power;
  HD void operator()(int64_t i) const {
    float norm, slope;
    power.Both(base[i], &norm, &slope);
    out[i] = Load(dy[i]) * Load(x[i]) * slope;
  }
};

// dx = dy * base^-beta - 2 * factor * beta * x * (sum of the neighbours' shares). The sums may lie
// in dx.
template <class T, class Power>
struct Gradient {
  const T *x, *dy;
  const float *base, *sums;
  T* dx;
  Power power;
  float slope;
  HD void operator()(int64_t i) const {
    Store(dx[i], Load(dy[i]) * power.Norm(base[i]) - slope * Load(x[i]) * sums[i]);
  }
};

class Lrn final : public Layer {
 public:
  explicit Lrn(const LayerSpec& spec) : spec_(spec) {}

  void Plan(PlanContext& plan) override {
    const caffe::LRNParameter& param = spec_.proto().lrn_param();
    RequireRank(plan, spec_, 0, 4, 4, "images (N, C, H, W)");
    if (param.local_size() % 2 == 0) {
      spec_.FailIn("lrn_param", "local_size",
                   Join("local_size is ", param.local_size(),
                        "; it must be odd, so that the neighbours lie evenly on both sides"));
    }
    across_ = param.norm_region() == caffe::LRNParameter::ACROSS_CHANNELS;
    half_ = (param.local_size() - 1) / 2;
    const auto size = static_cast<float>(param.local_size());
    factor_ = param.alpha() / (across_ ? size : size * size);
    plan.Out(0, plan.In(0), plan.InType(0));
    plan.KeepInput(0);
    one_pass_ = across_ && plan.device().kind() == DeviceKind::kCpu && half_ <= kMostLrnHalf &&
                plan.In(0)[1] <= kMostLrnChannels;
    if (one_pass_) return;
    const size_t bytes = static_cast<size_t>(plan.In(0).Count()) * sizeof(float);
    plan.Workspace(bytes);
    if (plan.training()) plan.Scratch(plan.InType(0) == DType::kF32 ? bytes : 2 * bytes);
  }

  void Forward(RunContext& run) override {
    WithTypeAndPower(run, [&](auto tag, auto power) {
      using T = typename decltype(tag)::Type;
      const T* x = run.In(0).As<T>();
      T* y = run.Out(0).As<T>();
      if (one_pass_) return OnePass<T>(run, x, nullptr, y, power);
      SumNeighbours(run, Square<T>{x}, Base(run));
      ForEach(run.device(), run.In(0).Count(),
              Normalize<T, decltype(power)>{x, Base(run), y, K(), factor_, power});
    });
  }

  void Backward(RunContext& run) override {
    WithTypeAndPower(run, [&](auto tag, auto power) {
      using T = typename decltype(tag)::Type;
      const T *x = run.In(0).As<T>(), *dy = run.GradOut(0).As<T>();
      T* dx = run.GradIn(0).As<T>();
      one_pass_ ? OnePass<T>(run, x, dy, dx, power) : BackwardInSteps<T>(run, x, dy, dx, power);
    });
  }

 private:
  float K() const { return across_ ? spec_.proto().lrn_param().k() : 1.0f; }
  // What the gradient subtracts of the neighbours' shares.
  float Slope() const { return 2 * factor_ * spec_.proto().lrn_param().beta(); }

  template <class F>
  void WithTypeAndPower(const RunContext& run, F f) const {
    const float beta = spec_.proto().lrn_param().beta();
    WithType(run.In(0).dtype,
             [&](auto tag) { beta == 0.75f ? f(tag, UsualPower{}) : f(tag, AnyPower{beta}); });
  }

  template <class T, class Power>
  void OnePass(const RunContext& run, const T* x, const T* dy, T* out, Power power) const {
    const Shape& shape = run.In(0).shape;
    const LrnOperands<T> in = {x, dy, out, shape[0] * shape[2] * shape[3], shape[1]};
    const LrnNumbers numbers = {half_, K(), factor_, Slope()};
    half_ == 2 ? RunLrnAcross<5>(in, numbers, power) : RunLrnAcross<0>(in, numbers, power);
  }

  // Scratch: the shares, then their sums where dx cannot hold those.
  template <class T, class Power>
  void BackwardInSteps(const RunContext& run, const T* x, const T* dy, T* dx, Power power) const {
    const int64_t count = run.In(0).Count();
    float* const share = reinterpret_cast<float*>(run.Scratch().data());
    const bool in_dx = run.GradIn(0).dtype == DType::kF32;
    float* const sums = in_dx ? run.GradIn(0).f32() : share + count;
    ForEach(run.device(), count, Share<T, Power>{x, dy, Base(run), share, power});
    SumNeighbours(run, Value{share}, sums);
    ForEach(run.device(), count, Gradient<T, Power>{x, dy, Base(run), sums, dx, power, Slope()});
  }

  // One number per element: k + alpha / n * (sum of squares).
  static float* Base(const RunContext& run) {
    return reinterpret_cast<float*>(run.Workspace().data());
  }

  template <class F>
  void SumNeighbours(const RunContext& run, F f, float* sum) const {
    const Shape& shape = run.In(0).shape;
    const int64_t pixels = shape[0] * shape[2] * shape[3];
    if (!across_) {
      MapRows(run.device(), pixels, shape[1],
              SumWithin<F>{f, sum, shape[1], shape[2], shape[3], half_});
    } else {
      MapRows(run.device(), pixels, shape[1], SumAcross<F>{f, sum, shape[1], half_});
    }
  }

  LayerSpec spec_;
  bool across_ = true, one_pass_ = false;
  int64_t half_ = 0;
  float factor_ = 0;
};

const RegisterLayer<Lrn> kLrn(
    "LRN",
    {.text = "y = x * (k + alpha / n * sum x'^2)^-beta over the n neighbours x' of each value.\n"
             "bottom (N, C, H, W). ACROSS_CHANNELS: the local_size channels around it at the same "
             "pixel, n = local_size. WITHIN_CHANNEL: the local_size * local_size pixels around it "
             "in the same channel, n = their number, k = 1 whatever the field says. Values "
             "outside count as zeros, also in n.",
     .param = "lrn_param",
     .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
