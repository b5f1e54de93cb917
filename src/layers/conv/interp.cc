#include <cmath>

#include "shared/checks.h"
#include "trainer/backend/loops/map_rows.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kInterpParam[] = "interp_param";
constexpr int kLanes = 16;

// Interpolation along one axis: output i is computed at start + i * ratio, between two inputs. The
// first and last outputs are at the first and last inputs ("aligned corners").
struct Line {
  int64_t start = 0, in = 1, out = 1;  // reads `in` inputs from `start` on
  float ratio = 0;

  Line() = default;
  Line(int64_t first, int64_t from, int64_t to)
      : start(first),
        in(from),
        out(to),
        ratio(to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0f) {}

  // Returns the input before output i, counted from `start`. *share is the weight of the next
  // input; the returned one has the weight 1 - *share.
  HD int64_t InputBefore(int64_t i, float* share) const {
    const float at = ratio * static_cast<float>(i);
    const auto whole = static_cast<int64_t>(at);
    const int64_t before = whole < in - 1 ? whole : in - 1;
    *share = before < in - 1 ? at - static_cast<float>(before) : 0.0f;
    return before;
  }
  // Returns the input after `before`, or `before` itself at the end.
  HD int64_t InputAfter(int64_t before) const { return before < in - 1 ? before + 1 : before; }
  // Returns the weight of input k in output i, from 0 to 1; k counts from `start`. The backward
  // pass uses it.
  HD float WeightOf(int64_t k, int64_t i) const {
    float share = 0;
    const int64_t before = InputBefore(i, &share);
    if (k == before) return 1 - share;
    return k == before + 1 ? share : 0.0f;
  }
  // Sets [*first, *last] to outputs that include all with a positive weight of input k; k counts
  // from `start`. The range may be a few outputs too large.
  HD void OutputRange(int64_t k, int64_t* first, int64_t* last) const {
    *first = 0;
    *last = out - 1;
    if (ratio == 0) return;
    const float low = static_cast<float>(k - 1) / ratio - 1;
    const float high = static_cast<float>(k + 1) / ratio + 1;
    if (low > 0) *first = static_cast<int64_t>(low);
    if (high < static_cast<float>(*last)) *last = static_cast<int64_t>(high);
  }
};

// Images (N, H, W, C) in memory; the inputs have `height` and `width` pixels.
struct Pixels {
  Line down, right;
  int64_t height = 1, width = 1, channels = 1;
};

// Computes one output pixel per row, all its channels, from the four inputs around it.
template <class T>
struct Mix {
  const T* x;
  T* y;
  Pixels in;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t column = row.index % in.right.out, line = row.index / in.right.out;
    const int64_t item = line / in.down.out;
    float below = 0, beside = 0;
    const int64_t top = in.down.InputBefore(line % in.down.out, &below);
    const int64_t left = in.right.InputBefore(column, &beside);
    const T* const a = Pixel(item, top, left);
    const T* const b = Pixel(item, top, in.right.InputAfter(left));
    const T* const c = Pixel(item, in.down.InputAfter(top), left);
    const T* const d = Pixel(item, in.down.InputAfter(top), in.right.InputAfter(left));
    T* const to = y + row.index * in.channels;
    row.ForEach([&](int64_t i) {
      Store(to[i], (1 - below) * ((1 - beside) * Load(a[i]) + beside * Load(b[i])) +
                       below * ((1 - beside) * Load(c[i]) + beside * Load(d[i])));
    });
  }

  // Returns the first channel of a pixel of x; h and w count from the starts of the lines.
  HD const T* Pixel(int64_t item, int64_t h, int64_t w) const {
    return x +
           ((item * in.height + in.down.start + h) * in.width + in.right.start + w) * in.channels;
  }
};

// The gradient: computes one input pixel per row, in blocks of kLanes channels, by collecting the
// gradients of the outputs that use it. Collecting needs no atomic additions, unlike scattering.
// Pixels that pad_beg and pad_end cut off get 0.
template <class T>
struct CollectInterp {
  const T* dy;
  T* dx;
  Pixels in;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t w = row.index % in.width - in.right.start;
    const int64_t h = row.index / in.width % in.height - in.down.start;
    const int64_t item = row.index / (in.width * in.height);
    const bool inside = h >= 0 && h < in.down.in && w >= 0 && w < in.right.in;
    row.ForEach([&](int64_t block) {
      const int64_t first = block * kLanes, left = in.channels - first;
      const int lanes = left < kLanes ? static_cast<int>(left) : kLanes;
      float sum[kLanes] = {};
      if (inside) AddGradients(item, h, w, first, lanes, sum);
      T* const to = dx + row.index * in.channels + first;
      for (int l = 0; l < lanes; ++l) Store(to[l], sum[l]);
    });
  }

  // Adds to `sum` the weighted gradients of all outputs that use pixel (h, w), for `lanes` channels
  // from `first` on.
  HD void AddGradients(int64_t item, int64_t h, int64_t w, int64_t first, int lanes,
                       float* sum) const {
    int64_t top = 0, bottom = 0, left = 0, right = 0;
    in.down.OutputRange(h, &top, &bottom);
    in.right.OutputRange(w, &left, &right);
    for (int64_t i = top; i <= bottom; ++i) {
      const float down = in.down.WeightOf(h, i);
      if (down == 0) continue;
      for (int64_t j = left; j <= right; ++j) {
        const float share = down * in.right.WeightOf(w, j);
        if (share == 0) continue;
        const T* const from =
            dy + ((item * in.down.out + i) * in.right.out + j) * in.channels + first;
        for (int l = 0; l < lanes; ++l) sum[l] += share * Load(from[l]);
      }
    }
  }
};

// Resizes images by bilinear interpolation with aligned corners, as the Interp layer of DeepLab and
// PSPNet. The output is a view of the input if the sizes are equal and no pixels are cut off.
class Interp final : public Layer {
 public:
  explicit Interp(const LayerSpec& spec) : spec_(spec) {
    const caffe::InterpParameter& param = spec.proto().interp_param();
    CheckForms(param, spec.proto().bottom_size());
    RequireSize("height", param.has_height(), param.height());
    RequireSize("width", param.has_width(), param.width());
    RequireSize("zoom_factor", param.has_zoom_factor(), param.zoom_factor());
    RequireSize("shrink_factor", param.has_shrink_factor(), param.shrink_factor());
    RequireCut("pad_beg", param.pad_beg());
    RequireCut("pad_end", param.pad_end());
  }

  void Setup(SetupContext& ctx) override {
    RequireRank(ctx, spec_, 0, 4, 4, "images (N, C, H, W)");
    if (ctx.NumInputs() == 2) {
      RequireRank(ctx, spec_, 1, 4, 4, "images (N, C, H, W); the second bottom gives the size");
      ctx.NotDifferentiable(1);
    }
    const Shape& in = ctx.Input(0);
    in_ = {MakeLine(ctx, 2), MakeLine(ctx, 3), in[2], in[3], in[1]};
    const Shape out = in.With(2, in_.down.out).With(3, in_.right.out);
    if (IsView(in, out)) return ctx.OutputView(0, 0, out);
    ctx.Output(0, out, ctx.InputType(0));
  }

  void Forward(const RunContext& run) override {
    if (IsView(run.Input(0).shape, run.Output(0).shape)) return;
    DispatchDtype(run.Input(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(run.device(), run.Output(0).shape[0] * in_.down.out * in_.right.out, in_.channels,
              Mix<T>{run.Input(0).As<T>(), run.Output(0).As<T>(), in_});
    });
  }

  // Overwrites the whole gradient; pixels that were cut off get 0.
  void Backward(const RunContext& run) override {
    if (!run.NeedsGradInput(0) || IsView(run.GradInput(0).shape, run.GradOutput(0).shape)) return;
    DispatchDtype(run.GradInput(0).dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      MapRows(run.device(), run.GradInput(0).shape[0] * in_.height * in_.width,
              (in_.channels + kLanes - 1) / kLanes,
              CollectInterp<T>{run.GradOutput(0).As<T>(), run.GradInput(0).As<T>(), in_});
    });
  }

 private:
  // Returns true if the output equals the input. If pixels are cut off, an output of the same size
  // is another image.
  bool IsView(const Shape& in, const Shape& out) const {
    return in == out && in_.down.in == in[2] && in_.right.in == in[3];
  }

  // Throws kConfig unless the size of the output is given in exactly one way: height and width,
  // factors, or a second bottom.
  void CheckForms(const caffe::InterpParameter& param, int bottoms) const {
    const bool size = param.has_height() || param.has_width();
    const bool factor = param.has_zoom_factor() || param.has_shrink_factor();
    if (!size && !factor && bottoms == 1) {
      spec_.Fail(
          "the size of the output is not given; write height and width, or zoom_factor, or "
          "shrink_factor, or give a second bottom of that size");
    }
    if (param.has_height() != param.has_width()) {
      const char* given = param.has_height() ? "height" : "width";
      const char* other = param.has_height() ? "width" : "height";
      spec_.FailIn(kInterpParam, given, Join(given, " is given without ", other, "; give both"));
    }
    const char* factor_field = param.has_zoom_factor() ? "zoom_factor" : "shrink_factor";
    if (size && factor) {
      spec_.FailIn(kInterpParam, factor_field,
                   Join(factor_field, " and height and width are both given; keep one of them"));
    }
    if (bottoms == 2 && (size || factor)) {
      spec_.FailIn(kInterpParam, size ? "height" : factor_field,
                   Join(size ? "height" : factor_field,
                        " is given, and a second bottom for the size; keep one"));
    }
  }
  // Throws kConfig for a given size or factor below 1.
  void RequireSize(const char* field, bool given, int32_t value) const {
    if (given && value < 1) {
      spec_.FailIn(kInterpParam, field, Join(field, " is ", value, "; it must be at least 1"));
    }
  }
  // Throws kConfig for a positive pad, which would add pixels; this layer can only cut them off.
  void RequireCut(const char* field, int32_t value) const {
    if (value > 0) {
      spec_.FailIn(kInterpParam, field,
                   Join(field, " is ", value, "; it must be 0, or negative to cut pixels off"));
    }
  }

  // Returns the interpolation along `axis` (2 or 3). Throws kConfig if pad_beg and pad_end leave no
  // input pixel.
  Line MakeLine(const SetupContext& ctx, int axis) const {
    const caffe::InterpParameter& param = spec_.proto().interp_param();
    const int64_t cut = -int64_t{param.pad_beg()};
    const int64_t in = ctx.Input(0)[axis] - cut + param.pad_end();
    if (in < 1) {
      spec_.FailIn(kInterpParam, cut > 0 ? "pad_beg" : "pad_end",
                   Join("pad_beg ", param.pad_beg(), " and pad_end ", param.pad_end(),
                        " leave nothing of axis ", axis, " of the input ", Dims(ctx.Input(0))));
    }
    if (ctx.NumInputs() == 2) {
      if (ctx.Input(1)[axis] < 1) spec_.Fail("bottom", "the second bottom has no pixels", 1);
      return {cut, in, ctx.Input(1)[axis]};
    }
    if (param.has_height()) return {cut, in, axis == 2 ? param.height() : param.width()};
    const int64_t shrunk = (in - 1) / param.shrink_factor() + 1;
    return {cut, in, (shrunk - 1) * param.zoom_factor() + 1};
  }

  LayerSpec spec_;
  Pixels in_;
};

const RegisterLayer<Interp> kInterp(
    "Interp",
    {.text =
         "Resizes images by bilinear interpolation with aligned corners (DeepLab, PSPNet).\n"
         "bottom (N, C, H, W), top (N, C, h, w) with\n"
         "  y[i] between x[floor(r * i)] and the next one, r = (H - 1) / (h - 1),\n"
         "along both axes. h and w are: height and width; or, with shrink_factor and then "
         "zoom_factor, (H - 1) / shrink_factor + 1 rounded down and (H - 1) * zoom_factor + 1; or "
         "the size of a second bottom, which gets no gradient. Negative pad_beg and pad_end first "
         "cut rows and columns off the bottom.",
     .param = kInterpParam,
     .arity = {.min_in = 1, .max_in = 2},
     .dtypes = DtypePolicy::kConfigurable,
     .second_input = DtypePolicy::kAny});

}  // namespace
}  // namespace trainer
