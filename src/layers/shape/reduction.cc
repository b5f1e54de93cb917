#include "shared/checks.h"
#include "trainer/backend/loops/reduce.h"

namespace trainer {
namespace {

using Op = caffe::ReductionParameter;

// Element i of row o is at Start(o) + i * step. Rows are counted in row-major order of the
// remaining axes, which for images differs from the order in memory.
struct Slots {
  int64_t length = 1, step = 1, channels = 1, heights = 1;

  // Returns the place in memory of the first element of row o.
  HD int64_t Start(int64_t o) const {
    const int64_t h = o % heights, c = o / heights % channels, n = o / heights / channels;
    return (n * heights + h) * length * channels + c;
  }
};

// The term that one element adds to the sum, by operation: |x| for ASUM, x^2 for SUMSQ, x for SUM
// and MEAN.
struct Term {
  int op;
  HD float operator()(float x) const {
    return op == Op::ASUM ? fabsf(x) : (op == Op::SUMSQ ? x * x : x);
  }
  // Returns the derivative of the term; 0 for |x| at 0.
  HD float Slope(float x) const {
    if (op == Op::ASUM) return x > 0 ? 1.0f : (x < 0 ? -1.0f : 0.0f);
    return op == Op::SUMSQ ? 2 * x : 1.0f;
  }
};

// Computes one output: coeff times the sum of a row's terms.
struct SumRow {
  const float* x;
  float* y;
  Slots slots;
  Term term;
  float coeff;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = slots.Start(row.index);
    const float sum = row.Sum([&](int64_t i) { return term(x[at + i * slots.step]); });
    row.Once([&] { y[row.index] = sum * coeff; });
  }
};

// Computes the gradient of one row's elements.
struct SpreadRow {
  const float *x, *dy;
  float* dx;
  Slots slots;
  Term term;
  float coeff;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = slots.Start(row.index);
    const float d = dy[row.index] * coeff;
    row.ForEach([&](int64_t i) {
      const int64_t k = at + i * slots.step;
      dx[k] = d * term.Slope(x[k]);
    });
  }
};

// Returns term i, for a reduction to one number.
struct SumAll {
  const float* x;
  Term term;
  HD float operator()(int64_t i) const { return term(x[i]); }
};

// Returns the gradient of an element, for a reduction to one number.
struct SpreadAll {
  const float* dy;
  Term term;
  float coeff;
  HD float operator()(float x) const { return *dy * coeff * term.Slope(x); }
};

// Reduces the axes from `axis` on to coeff times their SUM, ASUM, SUMSQ or MEAN.
class Reduction final : public Layer {
 public:
  explicit Reduction(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    const caffe::ReductionParameter& param = spec_.proto().reduction_param();
    const Shape& in = ctx.Input(0);
    const int axis =
        in.Rank() == 0 ? 0 : AxisIn(spec_, "reduction_param", "axis", param.axis(), in);
    slots_ = {.length = in.Count(axis)};
    if (in.IsImage() && axis >= 2) {
      slots_ = {.length = in.Count(axis),
                .step = in[1],
                .channels = in[1],
                .heights = axis == 3 ? in[2] : 1};
    }
    rows_ = in.Count() / slots_.length;
    coeff_ = param.coeff();
    if (param.operation() == Op::MEAN) coeff_ /= static_cast<float>(slots_.length);
    term_.op = param.operation();
    ctx.Output(0, in.Replace(axis, in.Rank(), {}));
    ctx.SaveInput(0);
  }

  void Forward(const RunContext& run) override {
    const float* x = run.Input(0).f32();
    float* y = run.Output(0).f32();
    if (rows_ == 1) {
      return ReduceSum(run.device(), slots_.length, SumAll{x, term_}, coeff_, y);
    }
    MapRows(run.device(), rows_, slots_.length, SumRow{x, y, slots_, term_, coeff_});
  }

  void Backward(const RunContext& run) override {
    const float* dy = run.GradOutput(0).f32();
    if (rows_ == 1) {
      return Map(run.device(), SpreadAll{dy, term_, coeff_}, run.GradInput(0), run.Input(0));
    }
    MapRows(run.device(), rows_, slots_.length,
            SpreadRow{run.Input(0).f32(), dy, run.GradInput(0).f32(), slots_, term_, coeff_});
  }

 private:
  LayerSpec spec_;
  Slots slots_;
  Term term_{Op::SUM};
  int64_t rows_ = 1;
  float coeff_ = 1;
};

const RegisterLayer<Reduction> kReduction(
    "Reduction",
    {.text = "Reduces all axes from `axis` (default 0) to one number: SUM, ASUM, SUMSQ or MEAN.\n"
             "ASUM adds absolute values, SUMSQ squares; the result is multiplied by coeff. The top "
             "has the axes before `axis`; if there are none, it is a scalar.",
     .param = "reduction_param"});

}  // namespace
}  // namespace trainer
