#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = x / 2 * (1 + erf(x / sqrt 2)). Source: Hendrycks and Gimpel, arXiv:1606.08415.
struct GeluFormula {
  HD float Forward(float x) const { return 0.5f * x * (1 + Erf(x * 0.70710678f)); }
  // Multiplies dy by y'(x) within 4e-7. (y'(x) - 1 / 2) / x is a quotient of polynomials in x^2 of
  // degrees 6 and 7, fitted to |x| <= 5.9 with a relative error of 6e-9; beyond, y' is 0 or 1. This
  // takes half as long as Erf and the Exp of the density.
  HD float Backward(float dy, float x) const {
    const float low = x < -5.9f ? -5.9f : x;
    const float bounded = low > 5.9f ? 5.9f : low;
    const float square = bounded * bounded;
    float p = 1.61873955e-08f;
    p = p * square + 8.16402286e-07f;
    p = p * square + 3.40897893e-05f;
    p = p * square + 0.000163110648f;
    p = p * square + 0.0139432663f;
    p = p * square - 0.0245547274f;
    p = p * square + 0.797884556f;
    float q = 1.28602996e-09f;
    q = q * square + 3.09055888e-07f;
    q = q * square + 9.79897074e-06f;
    q = q * square + 0.000235351947f;
    q = q * square + 0.00385934166f;
    q = q * square + 0.0433286428f;
    q = q * square + 0.302558405f;
    q = q * square + 1.0f;
    return dy * (0.5f + bounded * (p / q));
  }
};

// y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), from the same source.
struct ApproximateGeluFormula {
  static constexpr float kRootTwoOverPi = 0.79788456f, kCube = 0.044715f;

  HD float Odd(float x) const { return Tanh(kRootTwoOverPi * (x + kCube * x * x * x)); }
  HD float Forward(float x) const { return 0.5f * x * (1 + Odd(x)); }
  HD float Backward(float dy, float x) const {
    const float odd = Odd(x);
    const float slope = (1 - odd * odd) * kRootTwoOverPi * (1 + 3 * kCube * x * x);
    return dy * 0.5f * (1 + odd + x * slope);
  }
};

// Compilers do not vectorise a loop that chooses between the formulas, so Choose calls
// `use(formula)` with one of them.
struct GeluMath {
  bool approximate;

  explicit GeluMath(const LayerSpec& spec) : approximate(spec.proto().gelu_param().approximate()) {}
  Keeps Keep() const { return Keeps::kInput; }
  template <class Use>
  void Choose(const Use& use) const {
    if (approximate) return use(ApproximateGeluFormula());
    use(GeluFormula());
  }
};

const RegisterLayer<Unary<GeluMath>> kGelu(
    "GELU", {.text = "y = x * P(X <= x) for a standard normal X: x * (1 + erf(x / sqrt(2))) / 2.\n"
                     "approximate: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2. Any "
                     "shape.",
             .param = "gelu_param",
             .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
