#include "shared/log_base.h"
#include "shared/unary.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// y = base ^ (shift + scale * x), computed as exp((shift + scale * x) * log(base)), and dx = dy * y
// * scale * log(base).
struct ExpMath {
  float scale, shift;  // multiplied by log base

  explicit ExpMath(const LayerSpec& spec) {
    const caffe::ExpParameter& param = spec.proto().exp_param();
    const float log_base = LogOfBase(spec, "exp_param", param.base(), false);
    scale = param.scale() * log_base;
    shift = param.shift() * log_base;
  }
  Keeps Keep() const { return Keeps::kOutput; }
  HD float Forward(float x) const { return Exp(shift + scale * x); }
  HD float Backward(float dy, float y) const { return dy * y * scale; }
};

const RegisterLayer<Unary<ExpMath>> kExp(
    "Exp",
    {.text = "y = base ^ (shift + scale * x).\n"
             "Defaults: base e (written -1), scale 1, shift 0. Any shape; may work in place.",
     .param = "exp_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
