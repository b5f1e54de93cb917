#include "checks.h"
#include "trainer/backend/map_rows.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

// s^-beta; 0.75 is Caffe's exponent, and square roots vectorise.
HD float PowerOf(float s, float beta) {
  if (beta != 0.75f) return powf(s, -beta);
  const float root = sqrtf(s);
  return 1 / (root * sqrtf(root));
}

template <class T>
struct Square {
  const T* x;
  HD float operator()(int64_t at) const { return Load(x[at]) * Load(x[at]); }
};
struct Value {
  const float* x;
  HD float operator()(int64_t at) const { return x[at]; }
};

// One row per pixel: sum[c] = f(c - half) + ... + f(c + half), nothing beyond the channels. kSize
// is the number of terms where it is known, else 0.
template <int kSize, class F>
struct SumAcross {
  F f;
  float* sum;
  int64_t channels, half;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = row.index * channels;
    const int64_t terms = kSize > 0 ? kSize : 2 * half + 1;
    const int64_t inner = channels > 2 * half ? channels - 2 * half : 0;
    Row part = row;
    part.length = inner;
    part.ForEach([&](int64_t i) {
      float s = 0;
      for (int64_t k = 0; k < terms; ++k) s += f(at + i + k);
      sum[at + i + half] = s;
    });
    part.length = channels - inner;
    part.ForEach([&](int64_t i) {
      const int64_t c = i < half || inner == 0 ? i : i + inner;
      const int64_t first = c < half ? 0 : c - half;
      const int64_t last = c + half < channels ? c + half : channels - 1;
      float s = 0;
      for (int64_t k = first; k <= last; ++k) s += f(at + k);
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
template <class T>
struct Normalize {
  const T* x;
  float* base;
  T* y;
  float k, factor, beta;
  HD void operator()(int64_t i) const {
    const float s = k + factor * base[i];
    base[i] = s;
    Store(y[i], Load(x[i]) * PowerOf(s, beta));
  }
};

// What a place adds to the gradients of its neighbours, but for their own x: dy * x *
// base^(-beta-1)
template <class T>
struct Share {
  const T *x, *dy;
  const float* base;
  float* out;
  float beta;
  HD void operator()(int64_t i) const {
    out[i] = Load(dy[i]) * Load(x[i]) * PowerOf(base[i], beta) / base[i];
  }
};

// dx = dy * base^-beta - 2 * factor * beta * x * (sum of the neighbours' shares). The sums may lie
// in dx.
template <class T>
struct Gradient {
  const T *x, *dy;
  const float *base, *sums;
  T* dx;
  float beta, slope;
  HD void operator()(int64_t i) const {
    Store(dx[i], Load(dy[i]) * PowerOf(base[i], beta) - slope * Load(x[i]) * sums[i]);
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
    const size_t bytes = static_cast<size_t>(plan.In(0).Count()) * sizeof(float);
    plan.Workspace(bytes);
    if (plan.training()) plan.Scratch(plan.InType(0) == DType::kF32 ? bytes : 2 * bytes);
  }

  void Forward(RunContext& run) override {
    const caffe::LRNParameter& param = spec_.proto().lrn_param();
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* x = run.In(0).As<T>();
      SumNeighbours(run, Square<T>{x}, Base(run));
      ForEach(run.device(), run.In(0).Count(),
              Normalize<T>{x, Base(run), run.Out(0).As<T>(), across_ ? param.k() : 1.0f, factor_,
                           param.beta()});
    });
  }

  // Scratch: the shares, then their sums where dx cannot hold those.
  void Backward(RunContext& run) override {
    const float beta = spec_.proto().lrn_param().beta();
    const int64_t count = run.In(0).Count();
    float* const share = reinterpret_cast<float*>(run.Scratch().data());
    const bool in_dx = run.GradIn(0).dtype == DType::kF32;
    float* const sums = in_dx ? run.GradIn(0).f32() : share + count;
    WithType(run.In(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *x = run.In(0).As<T>(), *dy = run.GradOut(0).As<T>();
      ForEach(run.device(), count, Share<T>{x, dy, Base(run), share, beta});
      SumNeighbours(run, Value{share}, sums);
      ForEach(run.device(), count,
              Gradient<T>{x, dy, Base(run), sums, run.GradIn(0).As<T>(), beta, 2 * factor_ * beta});
    });
  }

 private:
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
    } else if (half_ == 2) {
      MapRows(run.device(), pixels, shape[1], SumAcross<5, F>{f, sum, shape[1], half_});
    } else {
      MapRows(run.device(), pixels, shape[1], SumAcross<0, F>{f, sum, shape[1], half_});
    }
  }

  LayerSpec spec_;
  bool across_ = true;
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
