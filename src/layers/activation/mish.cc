#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = x * tanh(log(1 + exp(x))). Source: Misra, arXiv:1908.08681. Computed by tanh(log(1 + e)) = e
// * (e + 2) / (e * (e + 2) + 2) for e = exp(x). From x = 20 on this factor is 1 in float, so x is
// limited there, which keeps the squares of e finite.
struct MishMath {
  explicit MishMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const {
    const float e = Exp(x > 20 ? 20.0f : x);
    const float n = e * (e + 2);
    return x * (n / (n + 2));
  }
  HD float Backward(float dy, float x) const {
    const float e = Exp(x > 20 ? 20.0f : x);
    const float n = e * (e + 2), inverse = 1 / (n + 2);
    return dy * (n * inverse + x * 4 * e * (e + 1) * inverse * inverse);
  }
};

const RegisterLayer<Unary<MishMath>> kMish("Mish",
                                           {.text = "y = x * tanh(log(1 + exp(x))). Any shape.",
                                            .param = "",
                                            .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
