#include "shared/unary.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// y = x limited to [min, max]. The gradient is dy within these bounds, ends included, else 0. NaN
// passes through forward and backward. The constructor throws kConfig without clip_param, or if min
// is above max.
struct ClipMath {
  float min, max;

  explicit ClipMath(const LayerSpec& spec)
      : min(spec.proto().clip_param().min()), max(spec.proto().clip_param().max()) {
    if (!spec.proto().has_clip_param()) {
      spec.Fail("clip_param is not given; write its min and max");
    }
    if (!(min <= max)) {
      spec.FailIn("clip_param", "min",
                  Join("min ", min, " is above max ", max, "; min must not be larger than max"));
    }
  }
  Keeps Keep() const { return Keeps::kInput; }
  HD float Forward(float x) const { return x < min ? min : (x > max ? max : x); }
  HD float Backward(float dy, float x) const { return x < min || x > max ? 0.0f : dy; }
};

const RegisterLayer<Unary<ClipMath>> kClip(
    "Clip", {.text = "y = min if x < min, max if x > max, else x. Any shape.\n"
                     "The gradient passes if min <= x <= max. You must give min and max.",
             .param = "clip_param",
             .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
