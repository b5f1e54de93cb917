#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = x * s and dx = dy * s * (1 + x * (1 - s)), with s = 1 / (1 + exp(-x)). Source: Elfwing et
// al., arXiv:1702.03118.
struct SiluMath {
  explicit SiluMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const { return x * Logistic(x); }
  HD float Backward(float dy, float x) const {
    const float s = Logistic(x);
    return dy * s * (1 + x * (1 - s));
  }
};

const RegisterLayer<Unary<SiluMath>> kSilu(
    "SiLU", {.text = "y = x / (1 + exp(-x)): Swish with beta 1. Any shape.",
             .param = "",
             .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
