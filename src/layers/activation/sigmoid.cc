#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = 1 / (1 + exp(-x)) and dx = dy * y * (1 - y). Backward needs the output.
struct SigmoidMath {
  explicit SigmoidMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kOutput; }
  HD float Forward(float x) const { return Logistic(x); }
  HD float Backward(float dy, float y) const { return dy * y * (1 - y); }
};

const RegisterLayer<Unary<SigmoidMath>> kSigmoid(
    "Sigmoid", {.text = "y = 1 / (1 + exp(-x)). Any shape; may work in place.",
                .param = "sigmoid_param",
                .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
