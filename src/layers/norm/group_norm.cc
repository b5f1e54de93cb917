#include "shared/checks.h"
#include "shared/moments.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kGroupNormParam[] = "group_norm_param";

// y = (x - mean) * inverse * factor + offset. The statistics are arrays (N, C), equal within a
// group; factor and offset are per channel, or null if they are not learned. X and C are the types
// with which a functor holds its tensors and the other arrays: see MapPixels.
template <class T, class X = const T*, class C = const float*>
struct Apply {
  X x;
  C mean, inverse, factor, offset;
  HD float operator()(int64_t at, int64_t c, int64_t stat) const {
    const float z = (Load(x[at]) - mean[stat]) * inverse[stat];
    return IsNull(factor) ? z : z * factor[c] + offset[c];
  }
  template <int V>
  HD auto Read(const Place& p) const {
    const bool scaled = factor != nullptr;
    return Apply<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at), LoadVector<V>(mean, p.stat), LoadVector<V>(inverse, p.stat),
        LoadVectorIf<V>(scaled, factor, p.c, 1.0f), LoadVectorIf<V>(scaled, offset, p.c, 0.0f)};
  }
  uintptr_t Addresses() const {
    return AddressOf(x) | AddressOf(mean) | AddressOf(inverse) | AddressOf(factor) |
           AddressOf(offset);
  }
};

// Returns dy * z, where z is the standardized x: a term of the factor's gradient.
template <class T, class X = const T*, class C = const float*>
struct Along {
  X x, dy;
  C mean, inverse;
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    return Load(dy[at]) * ((Load(x[at]) - mean[stat]) * inverse[stat]);
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return Along<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at), LoadVector<V>(dy, p.at), LoadVector<V>(mean, p.stat),
        LoadVector<V>(inverse, p.stat)};
  }
  uintptr_t Addresses() const {
    return AddressOf(x) | AddressOf(dy) | AddressOf(mean) | AddressOf(inverse);
  }
};

// Returns an item's sums (N, C), which are terms of the gradients of its channel's parameters.
struct SumsOfItem {
  const float *sum_dyz, *sum_dy;
  template <class Place>
  HD SumPair operator()(const Place& place) const {
    return {sum_dyz[place.At()], sum_dy[place.At()]};
  }
};

// Multiplies the sums (N, C) by the factors of their channels.
struct TimesFactor {
  float* sums;
  const float* factor;
  int64_t channels;
  HD void operator()(int64_t i) const { sums[i] *= factor[i % channels]; }
};

// dx = (dz - mean dz - z * mean (dz * z)) * inverse with dz = dy * factor
template <class T, class X = const T*, class C = const float*>
struct InputGradient {
  X x, dy;
  C mean, inverse, factor, mean_dz, mean_dzz;
  HD float operator()(int64_t at, int64_t c, int64_t stat) const {
    const float z = (Load(x[at]) - mean[stat]) * inverse[stat];
    const float dz = IsNull(factor) ? Load(dy[at]) : Load(dy[at]) * factor[c];
    return (dz - mean_dz[stat] - z * mean_dzz[stat]) * inverse[stat];
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return InputGradient<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at),
        LoadVector<V>(dy, p.at),
        LoadVector<V>(mean, p.stat),
        LoadVector<V>(inverse, p.stat),
        LoadVectorIf<V>(factor != nullptr, factor, p.c, 1.0f),
        LoadVector<V>(mean_dz, p.stat),
        LoadVector<V>(mean_dzz, p.stat)};
  }
  uintptr_t Addresses() const {
    return AddressOf(x) | AddressOf(dy) | AddressOf(mean) | AddressOf(inverse) | AddressOf(factor) |
           AddressOf(mean_dz) | AddressOf(mean_dzz);
  }
};

// y = (x - mean) / sqrt(variance + eps) * scale + bias over each group of C / groups neighbouring
// channels of each item. Source: Wu and He, arXiv:1803.08494.
class GroupNorm final : public Layer {
 public:
  explicit GroupNorm(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::GroupNormParameter& param = spec_.proto().group_norm_param();
    RequireRank(ctx, spec_, 0, 2, Shape::kMaxAxes, "(N, C, ...)");
    const Shape& in = ctx.Input(0);
    CheckFields(in[1]);
    items_ = PerItemChunks(in);
    stats_ = in[0] * in[1];
    in_group_ = in[1] / param.groups();
    ctx.Output(0, in, ctx.InputType(0));
    ctx.SaveInput(0);
    if (param.scale_bias()) {
      caffe::FillerParameter factor = param.scale_filler();
      if (!param.has_scale_filler()) factor.set_value(1);
      ctx.Param("scale", {in[1]}, factor);
      ctx.Param("bias", {in[1]}, param.bias_filler());
    }
    ScratchLayout layout;
    first_ = layout.Add<float>(stats_);
    second_ = layout.Add<float>(stats_);
    ctx.Workspace(layout.Bytes());
    ctx.Scratch(layout.Bytes());
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    float *const mean = first_.At(run.Workspace()), *const inverse = second_.At(run.Workspace());
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* x = run.Input(0).As<T>();
      SumChunks(run.device(), items_, ValueOf<T>{x}, mean);
      MeanOverGroups(run, mean);
      SumChunks(run.device(), items_, SquareAround<T>{x, mean}, inverse);
      MeanOverGroups(run, inverse);
      ForEach(run.device(), stats_, InverseRoot{inverse, spec_.proto().group_norm_param().eps()});
      MapPixels(run.device(), items_,
                Apply<T>{x, mean, inverse, run.ParamOrNull(0), run.ParamOrNull(1)},
                run.Output(0).As<T>());
    });
  }

  void Backward(const RunContext& run) override {
    const Device& device = run.device();
    const std::span<std::byte> kept = run.Workspace(), scratch = run.Scratch();
    const float *const mean = first_.At(kept), *const inverse = second_.At(kept);
    float *const sum_dy = first_.At(scratch), *const sum_dyz = second_.At(scratch);
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *x = run.Input(0).As<T>(), *dy = run.GradOutput(0).As<T>();
      SumChunks(device, items_, ValueOf<T>{dy}, sum_dy);
      SumChunks(device, items_, Along<T>{x, dy, mean, inverse}, sum_dyz);
      float *const to = run.GradParamOrNull(0), *const to_offset = run.GradParamOrNull(1);
      if (to != nullptr || to_offset != nullptr) {
        AddSumPairs(device, {items_.chunks, items_.rows.length, 1}, SumsOfItem{sum_dyz, sum_dy}, to,
                    to_offset);
      }
      if (!run.NeedsGradInput(0)) return;
      const float* const factor = run.ParamOrNull(0);
      for (float* const sums : {sum_dy, sum_dyz}) {
        if (factor != nullptr) {
          ForEach(device, stats_, TimesFactor{sums, factor, items_.rows.length});
        }
        MeanOverGroups(run, sums);
      }
      MapPixels(device, items_, InputGradient<T>{x, dy, mean, inverse, factor, sum_dy, sum_dyz},
                run.GradInput(0).As<T>());
    });
  }

 private:
  // Throws kConfig unless `groups` divides the channels and eps is not negative.
  void CheckFields(int64_t channels) const {
    const caffe::GroupNormParameter& param = spec_.proto().group_norm_param();
    if (param.groups() == 0 || channels % param.groups() != 0) {
      spec_.FailIn(kGroupNormParam, "groups",
                   Join("groups is ", param.groups(), "; it must divide the ", channels,
                        " channels of the input"));
    }
    if (!(param.eps() >= 0)) {
      spec_.FailIn(kGroupNormParam, "eps",
                   Join("eps is ", param.eps(), "; it must not be negative"));
    }
  }

  // Replaces the sums (N, C) of an item's channels by the mean over their group's elements.
  void MeanOverGroups(const RunContext& run, float* sums) const {
    const auto size = static_cast<float>(std::max<int64_t>(1, in_group_ * items_.chunk_rows));
    MapRows(run.device(), stats_ / in_group_, in_group_, MeanOfGroup{sums, 1 / size});
  }

  LayerSpec spec_;
  PixelChunks items_;
  int64_t stats_ = 0, in_group_ = 1;
  // Two arrays (N, C). In the workspace they are the mean and 1 / sqrt(variance + eps); in scratch,
  // sums of dy and dy * z.
  ScratchRegion<float> first_, second_;
};

const RegisterLayer<GroupNorm> kGroupNorm(
    "GroupNorm",
    {.text = "y = (x - mean) / sqrt(variance + eps) * scale + bias, per group of channels of each "
             "item.\n"
             "bottom (N, C, ...). `groups` (default 32) groups of C / groups neighbouring "
             "channels; 1 group: the whole item. scale and bias (C) are trained, initially 1 and "
             "0; scale_bias: false removes them.",
     .param = kGroupNormParam,
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
