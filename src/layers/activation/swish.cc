#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = x * s and dx = dy * (s + beta * x * s * (1 - s)), with s = 1 / (1 + exp(-beta * x)); beta is
// not trained. Source: Ramachandran et al., arXiv:1710.05941.
struct SwishMath {
  float beta;

  explicit SwishMath(const LayerSpec& spec) : beta(spec.proto().swish_param().beta()) {}
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const { return x * Logistic(beta * x); }
  HD float Backward(float dy, float x) const {
    const float s = Logistic(beta * x);
    return dy * (s + beta * x * s * (1 - s));
  }
};

const RegisterLayer<Unary<SwishMath>> kSwish(
    "Swish", {.text = "y = x / (1 + exp(-beta * x)), with beta 1 by default. Any shape.",
              .param = "swish_param",
              .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
