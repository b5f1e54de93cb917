#include "shared/checks.h"
#include "shared/moments.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The statistics are arrays (N, C). This turns sums over pixels into means over pixels. MeanOfGroup
// instead takes the mean over the whole item for across_channels, with the same number for each of
// its channels.
struct MeanOfEach {
  float* sums;
  float by;
  HD void operator()(int64_t i) const { sums[i] *= by; }
};

// Computes inverse = 1 / (deviation + eps) from a variance, in place, and ratio = (deviation + eps)
// / deviation, or 0 if the deviation is 0.
struct Deviation {
  float *inverse, *ratio;
  float eps;
  HD void operator()(int64_t i) const {
    const float root = sqrtf(inverse[i]);
    inverse[i] = 1 / (root + eps);
    ratio[i] = root > 0 ? (root + eps) / root : 0.0f;
  }
};

// y = (x - mean) * inverse. X and C are the types with which a functor holds its tensors and its
// arrays of statistics: see MapPixels.
template <class T, class X = const T*, class C = const float*>
struct Standardize {
  X x;
  C mean, inverse;  // inverse is null if only the mean is subtracted
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    const float d = Load(x[at]) - mean[stat];
    return IsNull(inverse) ? d : d * inverse[stat];
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return Standardize<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at), LoadVector<V>(mean, p.stat),
        LoadVectorIf<V>(inverse != nullptr, inverse, p.stat, 1.0f)};
  }
  uintptr_t Addresses() const { return AddressOf(x) | AddressOf(mean) | AddressOf(inverse); }
};

// dx = (dy - mean dy - y * ratio * mean (dy * y)) * inverse
template <class T, class X = const T*, class C = const float*>
struct StandardizeGradient {
  X y, dy;
  C inverse, ratio, mean_dy, mean_dyy;
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    const float along = Load(y[at]) * ratio[stat] * mean_dyy[stat];
    return (Load(dy[at]) - mean_dy[stat] - along) * inverse[stat];
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return StandardizeGradient<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(y, p.at),         LoadVector<V>(dy, p.at),
        LoadVector<V>(inverse, p.stat), LoadVector<V>(ratio, p.stat),
        LoadVector<V>(mean_dy, p.stat), LoadVector<V>(mean_dyy, p.stat)};
  }
  uintptr_t Addresses() const {
    return AddressOf(y) | AddressOf(dy) | AddressOf(inverse) | AddressOf(ratio) |
           AddressOf(mean_dy) | AddressOf(mean_dyy);
  }
};

// Mean-variance normalisation: y = (x - mean) / (deviation + eps) per channel of each item, or per
// item with across_channels; without normalize_variance, y = x - mean. Backward needs the output.
class Mvn final : public Layer {
 public:
  explicit Mvn(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::MVNParameter& param = spec_.proto().mvn_param();
    RequireRank(ctx, spec_, 0, 2, 4, "(N, C), (N, C, L) or (N, C, H, W)");
    if (!(param.eps() >= 0)) {
      spec_.FailIn("mvn_param", "eps", Join("eps is ", param.eps(), "; it must not be negative"));
    }
    const Shape& in = ctx.Input(0);
    items_ = PerItemChunks(in);
    stats_ = in[0] * in[1];
    scaled_ = param.normalize_variance();
    ctx.Output(0, in, ctx.InputType(0));
    if (scaled_) ctx.SaveOutput(0);
    ctx.AllowInPlace();
    ScratchLayout layout;
    first_ = layout.Add<float>(stats_);
    second_ = layout.Add<float>(stats_);
    ctx.Workspace(layout.Bytes());
    ctx.Scratch(layout.Bytes());
  }

  void Forward(const RunContext& run) override {
    float* const mean = first_.At(run.Scratch());
    float* const inverse = scaled_ ? first_.At(run.Workspace()) : nullptr;
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* x = run.Input(0).As<T>();
      ComputeMean(run, ValueOf<T>{x}, mean);
      if (scaled_) {
        ComputeMean(run, SquareAround<T>{x, mean}, inverse);
        ForEach(run.device(), stats_,
                Deviation{inverse, second_.At(run.Workspace()), spec_.proto().mvn_param().eps()});
      }
      MapPixels(run.device(), items_, Standardize<T>{x, mean, inverse}, run.Output(0).As<T>());
    });
  }

  void Backward(const RunContext& run) override {
    float *const mean_dy = first_.At(run.Scratch()), *const mean_dyy = second_.At(run.Scratch());
    DispatchDtype(run.GradOutput(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* dy = run.GradOutput(0).As<T>();
      T* const dx = run.GradInput(0).As<T>();
      ComputeMean(run, ValueOf<T>{dy}, mean_dy);
      if (!scaled_) {
        return MapPixels(run.device(), items_, Standardize<T>{dy, mean_dy, nullptr}, dx);
      }
      const T* y = run.Output(0).As<T>();
      const float *const inverse = first_.At(run.Workspace()), *const ratio =
                                                                   second_.At(run.Workspace());
      ComputeMean(run, ProductOf<T>{dy, y}, mean_dyy);
      MapPixels(run.device(), items_,
                StandardizeGradient<T>{y, dy, inverse, ratio, mean_dy, mean_dyy}, dx);
    });
  }

 private:
  // Computes the mean of f over the elements of each channel of each item, or of each whole item
  // with across_channels, into `mean` (N, C).
  template <class F>
  void ComputeMean(const RunContext& run, F f, float* mean) const {
    SumChunks(run.device(), items_, f, mean);
    const int64_t channels = items_.rows.length;
    const auto pixels = static_cast<float>(std::max<int64_t>(1, items_.chunk_rows));
    if (spec_.proto().mvn_param().across_channels()) {
      MapRows(run.device(), items_.chunks, channels,
              MeanOfGroup{mean, 1 / (pixels * static_cast<float>(channels))});
    } else {
      ForEach(run.device(), stats_, MeanOfEach{mean, 1 / pixels});
    }
  }

  LayerSpec spec_;
  PixelChunks items_;
  int64_t stats_ = 0;
  // Two arrays (N, C). In the workspace they are `inverse` and `ratio` of Deviation; in scratch,
  // means.
  ScratchRegion<float> first_, second_;
  bool scaled_ = true;
};

const RegisterLayer<Mvn> kMvn(
    "MVN", {.text = "y = (x - mean) / (deviation + eps), per channel of each item.\n"
                    "bottom (N, C), (N, C, L) or (N, C, H, W). across_channels: per item. Without "
                    "normalize_variance only the mean is subtracted. May work in place.",
            .param = "mvn_param",
            .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
