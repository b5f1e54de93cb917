#include "shared/unary.h"

namespace trainer {
namespace {

// y = |x| and dx = dy * sign(x), with sign(0) = 0. Backward needs the input.
struct AbsValMath {
  explicit AbsValMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const { return fabsf(x); }
  HD float Backward(float dy, float x) const { return x > 0 ? dy : (x < 0 ? -dy : 0.0f); }
};

const RegisterLayer<Unary<AbsValMath>> kAbsVal("AbsVal",
                                               {.text = "y = |x|, with gradient 0 at 0. Any shape.",
                                                .param = "",
                                                .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
