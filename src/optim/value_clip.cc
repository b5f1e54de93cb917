#include "value_clip.h"

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// Limits element i, which is a sum over all passes and perhaps multiplied by the loss scale.
struct ClipGradient {
  float* gradients;
  float limit;  // the limit of the sum without a loss scale
  const GradientVerdict* verdict;

  HD void operator()(int64_t i) const {
    const float most = verdict == nullptr ? limit : limit / verdict->grad_factor;
    const float g = gradients[i];
    gradients[i] = g > most ? most : g < -most ? -most : g;
  }
};

}  // namespace

void ClipValues(const Device& device, std::span<float> gradients, float limit, float passes,
                const GradientVerdict* verdict) {
  ForEach(device, static_cast<int64_t>(gradients.size()),
          ClipGradient{gradients.data(), limit * passes, verdict});
}

}  // namespace trainer
