#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// Binomial normal log likelihood, as in Caffe: y = log(1 + exp(x)) and dx = dy / (1 + exp(-x)).
struct BnllMath {
  explicit BnllMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kInput; }
  // Computes log(1 + exp(x)) without overflow.
  HD float Forward(float x) const { return (x > 0 ? x : 0.0f) + log1pf(Exp(-fabsf(x))); }
  HD float Backward(float dy, float x) const { return dy * Logistic(x); }
};

const RegisterLayer<Unary<BnllMath>> kBnll("BNLL", {.text = "y = log(1 + exp(x)). Any shape.",
                                                    .param = "",
                                                    .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
