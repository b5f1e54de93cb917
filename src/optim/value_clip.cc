#include "value_clip.h"

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// Cuts element i off at the limit of the mean gradient, converted to the scale of the sums.
struct ClipGradient {
  float* gradients;
  float limit;  // of the sum over all passes, without a loss scale
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
