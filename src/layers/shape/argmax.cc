#include "shared/checks.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

constexpr char kArgmaxParam[] = "argmax_param";

// Returns true if element i with value a precedes element j with value b in the result: greater
// values first, then later indices; NaN last.
HD bool Precedes(float a, int64_t i, float b, int64_t j) {
  if (a > b) return true;
  if (a < b) return false;
  const bool a_nan = a != a, b_nan = b != b;
  return a_nan == b_nan ? i > j : b_nan;
}

// Writes the indices and the values of the `top` greatest elements of each row, the greatest first;
// a null array is not written. Each element is found by a search for the greatest one after the
// last: top_k is small, and this needs no memory.
struct Greatest {
  const float* x;
  float *indices, *values;
  Rows rows, out;
  NchwOrder order;
  int64_t top, step;  // `step`: the stride within an output row

  // Returns element i of a row.
  HD float At(int64_t row, int64_t i) const {
    return x[order.Memory(rows.Start(row) + i * rows.inner)];
  }
  HD void operator()(int64_t row) const {
    int64_t last = -1;
    for (int64_t t = 0; t < top; ++t) {
      int64_t best = -1;
      for (int64_t i = 0; i < rows.length; ++i) {
        const bool left = last < 0 || Precedes(At(row, last), last, At(row, i), i);
        if (left && (best < 0 || Precedes(At(row, i), i, At(row, best), best))) best = i;
      }
      const int64_t to = out.Start(row) + t * step;
      if (indices != nullptr) indices[to] = static_cast<float>(best);
      if (values != nullptr) values[to] = At(row, best);
      last = best;
    }
  }
};

// The indices of the top_k greatest values of each item, or along `axis`; with out_max_val also the
// values, or along `axis` only the values. Equal values: the later index first, as in Caffe.
class ArgMax final : public Layer {
 public:
  explicit ArgMax(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::ArgMaxParameter& param = spec_.proto().argmax_param();
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 1, Shape::kMaxAxes, "at least one axis");
    const Shape& in = ctx.Input(0);
    if (param.has_axis()) {
      const int axis = AxisIn(spec_, kArgmaxParam, "axis", param.axis(), in);
      rows_ = AxisRows(in, axis);
      CheckTopK();
      out_ = {rows_.count, param.top_k(), rows_.inner};
      order_ = {};
      step_ = rows_.inner;
      ctx.Output(0, in.With(axis, param.top_k()));
    } else {
      rows_ = {in[0], in.Count(1), 1};
      CheckTopK();
      order_ = NchwOrder(in);
      ctx.Output(0, WholeItems(in, param.top_k(), param.out_max_val() ? 2 : 1));
    }
    ctx.NotDifferentiable(0);
  }

  void Forward(const RunContext& run) override {
    const caffe::ArgMaxParameter& param = spec_.proto().argmax_param();
    float* const y = run.Output(0).f32();
    const bool both = !param.has_axis() && param.out_max_val();
    float* const indices = both || !param.out_max_val() ? y : nullptr;
    float* const values = both ? y + values_at_ : param.out_max_val() ? y : nullptr;
    ForEach(
        run.device(), rows_.count,
        Greatest{run.Input(0).f32(), indices, values, rows_, out_, order_, param.top_k(), step_});
  }

 private:
  // Throws kConfig unless top_k is from 1 to the length of a row.
  void CheckTopK() const {
    const int64_t top = spec_.proto().argmax_param().top_k();
    if (top >= 1 && top <= rows_.length) return;
    spec_.FailIn(
        kArgmaxParam, "top_k",
        Join("top_k is ", top, "; with ", rows_.length, " values it must be 1 to ", rows_.length));
  }

  // Returns (N, parts, top, 1...), with as many axes as the input and at least 3. In memory the
  // parts follow each other or, in an image, are interleaved.
  Shape WholeItems(const Shape& in, int64_t top, int64_t parts) {
    std::vector<int64_t> dims(static_cast<size_t>(std::max(in.Rank(), 3)), 1);
    dims[0] = in[0];
    dims[1] = parts;
    dims[2] = top;
    const Shape out{std::span<const int64_t>(dims)};
    const bool permuted = IsNhwc(out);
    values_at_ = permuted ? 1 : top;
    step_ = permuted ? parts : 1;
    out_ = {in[0], parts * top, 1};
    return out;
  }

  LayerSpec spec_;
  Rows rows_, out_;
  NchwOrder order_;
  int64_t values_at_ = 0, step_ = 1;
};

const RegisterLayer<ArgMax> kArgMax(
    "ArgMax",
    {.text =
         "The indices of the top_k largest values. For equal values, the later index comes "
         "first.\n"
         "Without `axis`: indices c * H * W + h * W + w within each item; top (N, 1, top_k), or "
         "(N, 2, top_k) with out_max_val: indices, then values. The top has further axes of "
         "length 1 if the bottom has more than 3 axes.\n"
         "With `axis`: this axis of the top has length top_k and contains the indices, or with "
         "out_max_val the values. No gradient.",
     .param = kArgmaxParam});

}  // namespace
}  // namespace trainer
