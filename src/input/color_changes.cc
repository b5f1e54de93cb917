#include "color_changes.h"

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

float Clip(float value) { return std::clamp(value, 0.0f, 255.0f); }

float Gray(float blue, float green, float red) {
  return 0.299f * red + 0.587f * green + 0.114f * blue;
}

// The hue in sixths of the circle, from 0 to below 6: red 0, green 2, blue 4.
float HueOf(float blue, float green, float red, float top, float range) {
  if (range <= 0) return 0;
  float hue = 0;
  if (top == red) {
    hue = (green - blue) / range;
  } else if (top == green) {
    hue = 2 + (blue - red) / range;
  } else {
    hue = 4 + (red - green) / range;
  }
  return hue < 0 ? hue + 6 : hue;
}

// How far a channel is below the greatest, in shares of the range. The hue counts from its own.
float Below(float hue) {
  const float distance = std::min(std::abs(hue), 6 - std::abs(hue));  // on the circle, 0 to 3
  return std::clamp(distance - 1, 0.0f, 1.0f);
}

}  // namespace

void ScaleBrightness(float factor, FloatImage* pixels) {
  float* const values = pixels->Channel(0);
  const int64_t count = pixels->channels() * pixels->plane();
  for (int64_t i = 0; i < count; ++i) values[i] = Clip(values[i] * factor);
}

void ScaleContrast(float factor, FloatImage* pixels) {
  const float *const b = pixels->Channel(0), *const g = b + pixels->plane();
  const float* const r = g + pixels->plane();
  double sum = 0;
  for (int64_t i = 0; i < pixels->plane(); ++i) {
    sum += pixels->channels() == 3 ? Gray(b[i], g[i], r[i]) : b[i];
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(pixels->plane()));
  float* const values = pixels->Channel(0);
  const int64_t count = pixels->channels() * pixels->plane();
  for (int64_t i = 0; i < count; ++i) values[i] = Clip(mean + (values[i] - mean) * factor);
}

void ScaleSaturation(float factor, FloatImage* pixels) {
  if (pixels->channels() != 3) return;
  float *const b = pixels->Channel(0), *const g = pixels->Channel(1), *const r = pixels->Channel(2);
  for (int64_t i = 0; i < pixels->plane(); ++i) {
    const float gray = Gray(b[i], g[i], r[i]);
    b[i] = Clip(gray + (b[i] - gray) * factor);
    g[i] = Clip(gray + (g[i] - gray) * factor);
    r[i] = Clip(gray + (r[i] - gray) * factor);
  }
}

void TurnHue(float turn, FloatImage* pixels) {
  if (pixels->channels() != 3) return;
  float *const b = pixels->Channel(0), *const g = pixels->Channel(1), *const r = pixels->Channel(2);
  for (int64_t i = 0; i < pixels->plane(); ++i) {
    const float top = std::max({b[i], g[i], r[i]});
    const float range = top - std::min({b[i], g[i], r[i]});
    float hue = HueOf(b[i], g[i], r[i], top, range) + 6 * turn;
    hue -= 6 * std::floor(hue / 6);
    r[i] = top - range * Below(hue);
    g[i] = top - range * Below(hue - 2);
    b[i] = top - range * Below(hue - 4);
  }
}

void AddLighting(const double (&weights)[3], FloatImage* pixels) {
  constexpr double kValues[3] = {0.2175, 0.0188, 0.0045};
  constexpr double kVectors[3][3] = {// of red, green and blue: one column for each value
                                     {-0.5675, 0.7192, 0.4009},
                                     {-0.5808, -0.0045, -0.8140},
                                     {-0.5836, -0.6948, 0.4203}};
  if (pixels->channels() != 3) return;
  for (int color = 0; color < 3; ++color) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) sum += kVectors[color][k] * weights[k] * kValues[k];
    const auto add = static_cast<float>(255 * sum);
    float* const values = pixels->Channel(2 - color);
    for (int64_t i = 0; i < pixels->plane(); ++i) values[i] = Clip(values[i] + add);
  }
}

}  // namespace trainer
