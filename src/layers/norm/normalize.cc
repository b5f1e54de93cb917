#include <cmath>

#include "shared/checks.h"
#include "shared/moments.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kNormalizeParam[] = "norm_param";

// The vectors that are scaled to length 1, and the factor of each element. A vector is a row of
// `rows`; its element i has channel i / inner % channels. With one factor for all, channels is 1.
struct Vectors {
  Rows rows;
  int64_t channels = 1, inner = 1;

  // Divides only if a vector has several elements of a channel.
  HD int64_t Channel(int64_t i) const {
    return channels == 1 ? 0 : channels == rows.length ? i : i / inner % channels;
  }
};

// Computes one vector: y = x / sqrt(sum x^2 + eps) * scale.
template <class T>
struct NormalizeRow {
  const T* x;
  const float* scale;
  float* inverse;  // 1 / length of each row
  T* y;
  Vectors in;
  float eps;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = in.rows.Start(row.index), step = in.rows.inner;
    const float squares = row.Sum([&](int64_t i) {
      const float v = Load(x[at + i * step]);
      return v * v;
    });
    const float by = 1 / sqrtf(squares + eps);
    row.Once([&] { inverse[row.index] = by; });
    row.ForEach([&](int64_t i) {
      Store(y[at + i * step], Load(x[at + i * step]) * by * scale[in.Channel(i)]);
    });
  }
};

// dx = (d - z * sum (d * z)) * inverse with d = dy * scale, z = x * inverse.
template <class T>
struct InputGradientRow {
  const T *x, *dy;
  const float *scale, *inverse;
  T* dx;
  Vectors in;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = in.rows.Start(row.index), step = in.rows.inner;
    const float by = inverse[row.index];
    const auto z = [&](int64_t i) { return Load(x[at + i * step]) * by; };
    const auto d = [&](int64_t i) { return Load(dy[at + i * step]) * scale[in.Channel(i)]; };
    const float along = row.Sum([&](int64_t i) { return d(i) * z(i); });
    row.ForEach([&](int64_t i) { Store(dx[at + i * step], (d(i) - z(i) * along) * by); });
  }
};

// Computes what an element adds to the gradient of its channel's factor if each pixel is a vector.
template <class T>
struct ScaleGradient {
  const T *x, *dy;
  const float* inverse;

  struct Pixel {
    const T *x, *dy;
    float by;
    HD float operator()(int64_t at, int64_t, int64_t) const {
      return Load(x[at]) * Load(dy[at]) * by;
    }
  };
  HD Pixel OfPixel(int64_t pixel) const { return {x, dy, inverse[pixel]}; }
};

// The sums of all chunks. If each chunk is a vector, `inverse` is not null.
struct SumsOfChunks {
  const float *sums, *inverse;
  template <class Place>
  HD float operator()(const Place& place) const {
    const float sum = sums[place.At()];
    return inverse == nullptr ? sum : sum * inverse[place.Outer()];
  }
};

// Scales vectors to length 1 and multiplies them by a learned factor, as the Normalize layer of SSD
// (Liu et al., ParseNet, arXiv:1506.04579): a vector is a whole item, or with across_spatial: false
// the channels of one pixel.
class Normalize final : public Layer {
 public:
  explicit Normalize(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::NormalizeParameter& param = spec_.proto().norm_param();
    RequireRank(ctx, spec_, 0, 2, Shape::kMaxAxes, "(N, C, ...)");
    if (!(param.eps() >= 0)) {
      spec_.FailIn(kNormalizeParam, "eps",
                   Join("eps is ", param.eps(), "; it must not be negative"));
    }
    const Shape& in = ctx.Input(0);
    const Rows pixels = AxisRows(in, 1);
    vectors_.rows = param.across_spatial() ? Rows{in[0], in.Count(1), 1} : pixels;
    vectors_.channels = param.channel_shared() ? 1 : in[1];
    vectors_.inner = param.across_spatial() ? pixels.inner : 1;
    has_pixels_ = vectors_.rows.count == pixels.count;
    chunks_ = has_pixels_ ? BalancedChunks(in) : PerItemChunks(in);

    caffe::FillerParameter filler = param.scale_filler();
    if (!param.has_scale_filler()) filler.set_value(1);
    ctx.Param("scale", param.channel_shared() ? Shape{} : Shape{in[1]}, filler);
    ctx.Output(0, in, ctx.InputType(0));
    ctx.SaveInput(0);
    ctx.Workspace(static_cast<size_t>(vectors_.rows.count) * sizeof(float));
    if (ctx.training()) {
      ctx.Scratch(static_cast<size_t>(chunks_.chunks * in[1]) * sizeof(float));
    }
  }

  void Forward(const RunContext& run) override {
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(run.device(), vectors_.rows.count, vectors_.rows.length,
              NormalizeRow<T>{run.Input(0).As<T>(), run.Param(0), Inverse(run),
                              run.Output(0).As<T>(), vectors_, spec_.proto().norm_param().eps()});
    });
  }

  void Backward(const RunContext& run) override {
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *x = run.Input(0).As<T>(), *dy = run.GradOutput(0).As<T>();
      if (run.GradParam(0) != nullptr) AddScaleGradient<T>(run, x, dy);
      if (!run.NeedsGradInput(0)) return;
      MapRows(run.device(), vectors_.rows.count, vectors_.rows.length,
              InputGradientRow<T>{x, dy, run.Param(0), Inverse(run), run.GradInput(0).As<T>(),
                                  vectors_});
    });
  }

 private:
  // The workspace holds 1 / length of each vector.
  static float* Inverse(const RunContext& run) {
    return reinterpret_cast<float*>(run.Workspace().data());
  }

  // Adds the gradient of the factor: sums over chunks of pixels per channel, then over the chunks
  // and, for a shared factor, the channels. A vector is a pixel or a chunk.
  template <class T>
  void AddScaleGradient(const RunContext& run, const T* x, const T* dy) const {
    auto* const sums = reinterpret_cast<float*>(run.Scratch().data());
    const int64_t chunks = chunks_.chunks, channels = chunks_.rows.length;
    if (has_pixels_) {
      SumChunks(run.device(), chunks_, ScaleGradient<T>{x, dy, Inverse(run)}, sums);
    } else {
      SumChunks(run.device(), chunks_, ProductOf<T>{x, dy}, sums);
    }
    const bool is_shared = spec_.proto().norm_param().channel_shared();
    AddSums(run.device(), {chunks, is_shared ? 1 : channels, is_shared ? channels : 1},
            SumsOfChunks{sums, has_pixels_ ? nullptr : Inverse(run)}, run.GradParam(0));
  }

  LayerSpec spec_;
  Vectors vectors_;
  bool has_pixels_ = false;  // whether each pixel is a vector
  PixelChunks chunks_;
};

const RegisterLayer<Normalize> kNormalize(
    "Normalize",
    {.text = "y = x / sqrt(sum x^2 + eps) * scale, with the sum over the values of an item "
             "(SSD).\n"
             "bottom (N, C, ...). across_spatial: false sums over the channels of one pixel only. "
             "Parameter: scale, one number, or (C) with channel_shared: false; initially 1.",
     .param = kNormalizeParam,
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
