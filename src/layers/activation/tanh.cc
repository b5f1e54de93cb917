#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = tanh(x) and dx = dy * (1 - y^2). Backward needs the output.
struct TanhMath {
  explicit TanhMath(const LayerSpec&) {}
  Keeps Keep() const { return Keeps::kOutput; }
  HD float Forward(float x) const { return Tanh(x); }
  HD float Backward(float dy, float y) const { return dy * (1 - y * y); }
};

const RegisterLayer<Unary<TanhMath>> kTanh("TanH",
                                           {.text = "y = tanh(x). Any shape; may work in place.",
                                            .param = "tanh_param",
                                            .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
