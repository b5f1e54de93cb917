#include "resized_crop.h"

#include <cmath>

namespace trainer {
namespace {

// To the nearest whole number, halves to the even one: as Python rounds.
int Rounded(double x) { return static_cast<int>(std::nearbyint(x)); }

// All of the picture but what makes it too wide or too high.
Rect MiddlePart(int height, int width, double least, double greatest) {
  const double aspect = static_cast<double>(width) / height;
  Rect box{0, 0, width, height};
  if (aspect < least) box.height = Rounded(width / least);
  if (aspect > greatest) box.width = Rounded(height * greatest);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

}  // namespace

Rect DrawResizedCrop(int height, int width, const caffe::RandomResizedCropParameter& param,
                     RecordRng* draws) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(height) * width;
  const double low = std::log(static_cast<double>(param.min_aspect()));
  const double high = std::log(static_cast<double>(param.max_aspect()));
  for (int i = 0; i < kAttempts; ++i) {
    const double share = draws->Within(param.min_area_ratio(), param.max_area_ratio());
    const double aspect = std::exp(draws->Within(low, high));
    const int wide = Rounded(std::sqrt(area * share * aspect));
    const int tall = Rounded(std::sqrt(area * share / aspect));
    if (wide < 1 || tall < 1 || wide > width || tall > height) continue;
    const int top = static_cast<int>(draws->Below(height - tall + 1));
    const int left = static_cast<int>(draws->Below(width - wide + 1));
    return {left, top, wide, tall};
  }
  return MiddlePart(height, width, param.min_aspect(), param.max_aspect());
}

}  // namespace trainer
