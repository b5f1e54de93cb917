#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = x / 2 * (1 + Odd(x)), where Odd(x) is erf(x / sqrt 2) or, with `approximate`, tanh(sqrt(2 /
// pi) * (x + 0.044715 x^3)). dx = dy / 2 * (1 + Odd(x) + x * Odd'(x)). Source: Hendrycks and
// Gimpel, arXiv:1606.08415.
template <bool kApproximate>
struct GeluFormula {
  static constexpr float kRootHalf = 0.70710678f, kRootTwoOverPi = 0.79788456f, kCube = 0.044715f;

  HD float Odd(float x) const {
    if constexpr (!kApproximate) return Erf(x * kRootHalf);
    return Tanh(kRootTwoOverPi * (x + kCube * x * x * x));
  }
  HD float Forward(float x) const { return 0.5f * x * (1 + Odd(x)); }
  HD float Backward(float dy, float x) const {
    const float odd = Odd(x);
    const float slope = kApproximate ? (1 - odd * odd) * kRootTwoOverPi * (1 + 3 * kCube * x * x)
                                     : kRootTwoOverPi * Exp(-0.5f * x * x);
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
    if (approximate) return use(GeluFormula<true>());
    use(GeluFormula<false>());
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
