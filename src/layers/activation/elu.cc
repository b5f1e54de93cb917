#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = lambda * x for x > 0, else lambda * alpha * (exp(x) - 1); the slope is lambda, or lambda *
// alpha * exp(x) = y + lambda * alpha. If alpha is not negative and lambda is positive, y has the
// sign of x, so that Backward needs only y (v is y); otherwise v is x. Source: Clevert et al.,
// arXiv:1511.07289.
struct EluMath {
  float alpha, lambda;

  explicit EluMath(const LayerSpec& spec)
      : alpha(spec.proto().elu_param().alpha()), lambda(spec.proto().elu_param().lambda()) {}
  Keeps Keep() const { return alpha >= 0 && lambda > 0 ? Keeps::kOutput : Keeps::kInput; }
  HD float Forward(float x) const { return lambda * (x > 0 ? x : alpha * (Exp(x) - 1)); }
  HD float Backward(float dy, float v) const {
    const bool backward_from_output = alpha >= 0 && lambda > 0;
    const float slope = backward_from_output ? v + lambda * alpha : lambda * alpha * Exp(v);
    return dy * (v > 0 ? lambda : slope);
  }
};

const RegisterLayer<Unary<EluMath>> kElu(
    "ELU", {.text = "y = lambda * x if x > 0, else lambda * alpha * (exp(x) - 1).\n"
                    "alpha and lambda are 1 by default. Any shape; may work in place.",
            .param = "elu_param",
            .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
