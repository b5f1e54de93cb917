#include "value_clip.h"

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

struct LimitTo {
  float most;
  HD float operator()(float g) const { return g > most ? most : g < -most ? -most : g; }
};

// Limits a gradient, which is a sum over all passes and perhaps multiplied by the loss scale.
struct ClipGradient {
  float limit;  // the limit of the sum without a loss scale
  const GradientVerdict* verdict;

  HD LimitTo Prepared() const {
    return {verdict == nullptr ? limit : limit / verdict->grad_factor};
  }
  HD float operator()(float g) const { return Prepared()(g); }
};

}  // namespace

void ClipValues(const Device& device, std::span<float> gradients, float limit, float passes,
                const GradientVerdict* verdict) {
  const Tensor all = {gradients.data(), {static_cast<int64_t>(gradients.size())}, DType::kF32};
  Map(device, ClipGradient{limit * passes, verdict}, all, all);
}

}  // namespace trainer
