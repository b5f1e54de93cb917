#include "shared/checks.h"
#include "shared/plain_relu.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the gradient of an input of a sum with coefficient `by`.
struct ScaleByCoefficient {
  float by;
  HD float operator()(float x) const { return by * x; }
};
// Adds a further input with coefficient `by` to a sum.
struct AddScaled {
  float by;
  HD float operator()(float sum, float x) const { return sum + by * x; }
};
// Sums the first two inputs with their coefficients in one pass.
struct Weigh {
  float a, b;
  HD float operator()(float x, float y) const { return a * x + b * y; }
};
struct Times {
  HD float operator()(float a, float b) const { return a * b; }
};
struct Greater {
  HD float operator()(float a, float b) const { return b > a ? b : a; }
};
// Returns the gradient of an input of a maximum y: dy where the input has that value, else 0.
struct PassWhereEqual {
  HD float operator()(float dy, float x, float y) const { return x == y ? dy : 0.0f; }
};
// Takes the gradient from an input that only ties with input `x`, which wins: where x is the
// maximum, returns 0.
struct DropWhereEqual {
  HD float operator()(float dx, float x, float winner) const { return x == winner ? 0.0f : dx; }
};
// Returns the gradient of an input x of a product y as dy * y / x, for stable_prod_grad: false.
struct Quotient {
  HD float operator()(float dy, float y, float x) const { return dy * (y / x); }
};

// Sums the first two inputs with their coefficients, with a ReLU fused into it. NaN stays NaN.
struct WeighPositive {
  Weigh sum;
  HD float operator()(float x, float y) const {
    const float v = sum(x, y);
    return v <= 0 ? 0.0f : v;
  }
};
// Returns the gradient of an input of a sum with a fused ReLU, whose output is y.
struct ScaleWherePositive {
  float by;
  HD float operator()(float dy, float y) const { return y > 0 ? by * dy : 0.0f; }
};

using Param = caffe::EltwiseParameter;

// Combines inputs of one shape element by element: SUM (with `coeff`), PROD or MAX. The constructor
// throws kConfig for `coeff` with another operation or count.
class Eltwise final : public Layer {
 public:
  explicit Eltwise(const LayerSpec& spec)
      : spec_(spec), op_(spec.proto().eltwise_param().operation()) {
    const Param& param = spec.proto().eltwise_param();
    const int inputs = spec.proto().bottom_size();
    if (param.coeff_size() > 0 && op_ != Param::SUM) {
      spec.FailIn("eltwise_param", "coeff", "coeff works only with operation SUM; remove it", 0);
    }
    if (param.coeff_size() > 0 && param.coeff_size() != inputs) {
      spec.FailIn("eltwise_param", "coeff",
                  Join("coeff is given ", param.coeff_size(), " times for ", inputs,
                       " bottoms; give none, or one per bottom"),
                  0);
    }
    coeff_.assign(static_cast<size_t>(inputs), 1.0f);
    std::copy(param.coeff().begin(), param.coeff().end(), coeff_.begin());
  }

  void Setup(SetupContext& ctx) override {
    RequireEqualShapes(ctx, spec_);
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    if (relu_) ctx.SaveOutput(0);
    if (op_ == Param::SUM) return ctx.AllowInPlace();
    for (int i = 0; i < ctx.NumInputs(); ++i) ctx.SaveInput(i);
    ctx.SaveOutput(0);
  }

  // Accepts one ReLU of slope 0 after a sum of two inputs.
  bool Fuse(std::span<const LayerSpec* const> next, const Device&) override {
    const bool relu = next.size() == 1 && IsPlainRelu(*next[0]);
    if (!next.empty() && !(relu && op_ == Param::SUM && coeff_.size() == 2)) return false;
    relu_ = relu;
    return true;
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const Device& device = run.device();
    const Tensor& y = run.Output(0);
    const ConstTensor &a = run.Input(0), &b = run.Input(1);
    if (relu_) return Map(device, WeighPositive{{coeff_[0], coeff_[1]}}, y, a, b);
    if (op_ == Param::SUM) Map(device, Weigh{coeff_[0], coeff_[1]}, y, a, b);
    if (op_ == Param::PROD) Map(device, Times{}, y, a, b);
    if (op_ == Param::MAX) Map(device, Greater{}, y, a, b);
    for (int i = 2; i < run.NumInputs(); ++i) {
      if (op_ == Param::SUM)
        Map(device, AddScaled{coeff_[static_cast<size_t>(i)]}, y, y, run.Input(i));
      if (op_ == Param::PROD) Map(device, Times{}, y, y, run.Input(i));
      if (op_ == Param::MAX) Map(device, Greater{}, y, y, run.Input(i));
    }
  }

  void Backward(const RunContext& run) override {
    for (int i = run.NumInputs();
         i-- > 0;) {  // input 0 is last because its gradient may share dy's memory
      if (!run.NeedsGradInput(i)) continue;
      if (op_ == Param::SUM) BackwardSum(run, i);
      if (op_ == Param::PROD) BackwardProduct(run, i);
      if (op_ == Param::MAX) BackwardMax(run, i);
    }
  }

 private:
  // Computes the gradient of input i of a sum.
  void BackwardSum(const RunContext& run, int i) {
    const float by = coeff_[static_cast<size_t>(i)];
    if (relu_) {
      return Map(run.device(), ScaleWherePositive{by}, run.GradInput(i), run.GradOutput(0),
                 run.Output(0));
    }
    const bool same_memory = run.GradInput(i).data == run.GradOutput(0).data;
    if (by == 1 && same_memory) return;
    Map(run.device(), ScaleByCoefficient{by}, run.GradInput(i), run.GradOutput(0));
  }

  // Multiplies dy by the other inputs or, if stable_prod_grad is false, by y / x.
  void BackwardProduct(const RunContext& run, int i) {
    const Device& device = run.device();
    const Tensor& dx = run.GradInput(i);
    if (!spec_.proto().eltwise_param().stable_prod_grad()) {
      return Map(device, Quotient{}, dx, run.GradOutput(0), run.Output(0), run.Input(i));
    }
    bool started = false;
    for (int k = 0; k < run.NumInputs(); ++k) {
      if (k == i) continue;
      Map(device, Times{}, dx, started ? ConstTensor(dx) : run.GradOutput(0), run.Input(k));
      started = true;
    }
  }

  // If several inputs have the greatest value, input 1 wins over input 0, and both win over the
  // others; among the others, the first wins. Only the winner gets the gradient.
  void BackwardMax(const RunContext& run, int i) {
    const Device& device = run.device();
    Map(device, PassWhereEqual{}, run.GradInput(i), run.GradOutput(0), run.Input(i), run.Output(0));
    for (int k = 0; k < run.NumInputs(); ++k) {
      const bool before = i == 0 ? k == 1 : (i == 1 ? false : k < i);
      if (before)
        Map(device, DropWhereEqual{}, run.GradInput(i), run.GradInput(i), run.Input(k),
            run.Output(0));
    }
  }

  LayerSpec spec_;
  Param::EltwiseOp op_;
  std::vector<float> coeff_;
  bool relu_ = false;  // whether the following ReLU is fused into it
};

const RegisterLayer<Eltwise> kEltwise(
    "Eltwise",
    {.text =
         "Combines inputs of the same shape element by element: SUM (default), PROD or MAX.\n"
         "SUM: `coeff` gives a factor per bottom. MAX: the gradient goes to one winner; for equal "
         "values, the second bottom wins over the first, and these two over the others. PROD: the "
         "gradient is the product of the other bottoms; stable_prod_grad: false computes it as y "
         "/ x, which fails at 0.",
     .param = "eltwise_param",
     .arity = {.min_in = 2, .max_in = -1},
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
