#include "inspect/saliency.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainer {

Image MakeSaliency(std::span<const float> gradient, const Shape& shape) {
  Image image;
  image.channels = 1;
  image.height = static_cast<int>(shape[2]);
  image.width = static_cast<int>(shape[3]);
  const auto plane = static_cast<size_t>(image.Plane());
  std::vector<float> strengths(plane, 0.0f);
  for (size_t i = 0; i < static_cast<size_t>(shape.Count(1)); ++i) {
    const float strength = std::fabs(gradient[i]);
    float& pixel = strengths[i % plane];
    if (std::isfinite(strength)) pixel = std::max(pixel, strength);
  }
  std::vector<float> sorted = strengths;
  const auto at = sorted.end() - 1 - static_cast<std::ptrdiff_t>(plane / 100);
  std::ranges::nth_element(sorted, at);
  // If less than a hundredth of the pixels have a gradient, the largest one is drawn white.
  const float white = *at > 0 ? *at : *std::ranges::max_element(at, sorted.end());
  for (const float strength : strengths) {
    const float level = white > 0 ? std::min(strength / white, 1.0f) : 0;
    image.pixels.push_back(static_cast<uint8_t>(255 * level + 0.5f));
  }
  return image;
}

}  // namespace trainer
