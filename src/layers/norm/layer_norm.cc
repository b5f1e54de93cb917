#include <algorithm>
#include <type_traits>

#include "shared/checks.h"
#include "trainer/backend/loops/grouped_sums.h"
#include "trainer/backend/loops/map_rows.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kLayerNormParam[] = "layer_norm_param";

// Computes one row: its mean, 1 / sqrt(variance + eps), and y. factor and offset are null if they
// are not learned. Contiguous is std::true_type if the elements of a row are neighbours in memory.
template <class T, class Contiguous>
struct LayerNormStandardize {
  const T* x;
  const float *factor, *offset;
  float *mean, *inverse;
  T* y;
  Rows rows;
  float eps;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = Contiguous::value ? 1 : rows.inner;
    const float by = 1 / static_cast<float>(row.length);
    const float m = row.Sum([&](int64_t i) { return Load(x[at + i * step]); }) * by;
    const float variance = by * row.Sum([&](int64_t i) {
      const float d = Load(x[at + i * step]) - m;
      return d * d;
    });
    const float v = 1 / sqrtf(variance + eps);
    row.Once([&] {
      mean[row.index] = m;
      inverse[row.index] = v;
    });
    row.StoreEach(
        [&](int64_t i) {
          const float z = (Load(x[at + i * step]) - m) * v;
          return factor == nullptr ? z : z * factor[i] + offset[i];
        },
        [&](int64_t i, float value) { Store(y[at + i * step], value); });
  }
};

// dx = (dz - mean dz - z * mean (dz * z)) * inverse with dz = dy * factor, z the standardized x.
template <class T, class Contiguous>
struct LayerNormInputGradient {
  const T *x, *dy;
  const float *factor, *mean, *inverse;
  T* dx;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = Contiguous::value ? 1 : rows.inner;
    const float m = mean[row.index], v = inverse[row.index];
    const float by = 1 / static_cast<float>(row.length);
    const auto z = [&](int64_t i) { return (Load(x[at + i * step]) - m) * v; };
    const auto dz = [&](int64_t i) {
      const float d = Load(dy[at + i * step]);
      return factor == nullptr ? d : d * factor[i];
    };
    const float mean_dz = row.Sum(dz) * by;
    const float mean_dzz = row.Sum([&](int64_t i) { return dz(i) * z(i); }) * by;
    row.StoreEach([&](int64_t i) { return (dz(i) - mean_dz - z(i) * mean_dzz) * v; },
                  [&](int64_t i, float value) { Store(dx[at + i * step], value); });
  }
};

// Returns an element's terms of the gradients of factor and offset.
template <class T>
struct LayerNormParamTerms {
  const T *x, *dy;
  const float *mean, *inverse;

  template <class Place>
  HD SumPair operator()(const Place& place) const {
    const int64_t at = place.At(), row = place.Term();
    const float d = Load(dy[at]);
    return {d * ((Load(x[at]) - mean[row]) * inverse[row]), d};
  }
};

// y = (x - mean) / sqrt(variance + eps) * scale + bias over the axes from `axis` on, which form a
// row; scale and bias are per element of a row. Source: Ba, Kiros and Hinton, arXiv:1607.06450.
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::LayerNormParameter& param = spec_.proto().layer_norm_param();
    RequireRank(ctx, spec_, 0, 1, Shape::kMaxAxes, "at least one axis");
    if (!(param.eps() >= 0)) {
      spec_.FailIn(kLayerNormParam, "eps",
                   Join("eps is ", param.eps(), "; it must not be negative"));
    }
    const Shape& in = ctx.Input(0);
    const int axis = AxisIn(spec_, kLayerNormParam, "axis", param.axis(), in);
    // For axis 0 or 1, an image's rows are contiguous; for a later axis, the elements of a row are
    // C apart.
    rows_ = {in.Count(0, axis), in.Count(axis), IsNhwc(in) && axis > 1 ? in[1] : 1};
    ctx.Output(0, in, ctx.InputType(0));
    ctx.SaveInput(0);
    if (param.scale_bias()) {
      const Shape shape(in.dims().subspan(static_cast<size_t>(axis)));
      ParamOptions options;
      if (IsNhwc(in) && axis <= 1) options.layout = {in[1], in[2], in[3]};
      caffe::FillerParameter factor = param.scale_filler();
      if (!param.has_scale_filler()) factor.set_value(1);
      ctx.Param("scale", shape, factor, options);
      ctx.Param("bias", shape, param.bias_filler(), options);
    }
    ScratchLayout layout;
    mean_ = layout.Add<float>(rows_.count);
    inverse_ = layout.Add<float>(rows_.count);
    ctx.Workspace(layout.Bytes());
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace();
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForStep([&](auto contiguous) {
        MapRows(run.device(), rows_.count, rows_.length,
                LayerNormStandardize<T, decltype(contiguous)>{
                    run.Input(0).As<T>(), run.ParamOrNull(0), run.ParamOrNull(1), mean_.At(kept),
                    inverse_.At(kept), run.Output(0).As<T>(), rows_,
                    spec_.proto().layer_norm_param().eps()});
      });
    });
  }

  void Backward(const RunContext& run) override {
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      ForStep([&](auto contiguous) { ComputeGradients<T, decltype(contiguous)>(run); });
    });
  }

 private:
  // Calls f with the type Contiguous of the functors above.
  template <class F>
  void ForStep(const F& f) const {
    if (rows_.inner == 1) return f(std::true_type{});
    f(std::false_type{});
  }

  // Computes the gradients of scale and bias, and of the input if it needs one.
  template <class T, class Contiguous>
  void ComputeGradients(const RunContext& run) const {
    const float* const mean = mean_.At(run.Workspace());
    const float* const inverse = inverse_.At(run.Workspace());
    const T *x = run.Input(0).As<T>(), *dy = run.GradOutput(0).As<T>();
    float *const factor = run.GradParamOrNull(0), *const offset = run.GradParamOrNull(1);
    if (factor != nullptr || offset != nullptr) {
      AddSumPairs(run.device(),
                  {rows_.count / std::max<int64_t>(1, rows_.inner), rows_.length, rows_.inner},
                  LayerNormParamTerms<T>{x, dy, mean, inverse}, factor, offset);
    }
    if (!run.NeedsGradInput(0)) return;
    MapRows(run.device(), rows_.count, rows_.length,
            LayerNormInputGradient<T, Contiguous>{x, dy, run.ParamOrNull(0), mean, inverse,
                                                  run.GradInput(0).As<T>(), rows_});
  }

  LayerSpec spec_;
  Rows rows_;
  ScratchRegion<float> mean_,
      inverse_;  // in the workspace, per row: mean, 1 / sqrt(variance + eps)
};

const RegisterLayer<LayerNorm> kLayerNorm(
    "LayerNorm",
    {.text = "y = (x - mean) / sqrt(variance + eps) * scale + bias, over the axes from `axis` "
             "on.\n"
             "Any shape; `axis` (default 1) may be negative. scale and bias have the shape of "
             "these axes and are trained, initially 1 and 0; scale_bias: false removes them.",
     .param = kLayerNormParam,
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
