#pragma once
// Changes of colors, on floats, so that several of them round once.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainer {

// An image (C, H, W) of numbers from 0 to 255; of three channels blue comes first.
class FloatImage {
 public:
  // In `memory`, which is used again by the next image.
  FloatImage(int channels, int64_t height, int64_t width, std::vector<float>* memory)
      : channels_(channels), width_(width), plane_(height * width), values_(*memory) {
    values_.resize(static_cast<size_t>(channels * plane_));
  }

  int channels() const { return channels_; }
  int64_t plane() const { return plane_; }  // pixels
  float* Channel(int c) { return values_.data() + c * plane_; }
  float* Row(int c, int64_t row) { return Channel(c) + row * width_; }

 private:
  int channels_;
  int64_t width_, plane_;
  std::vector<float>& values_;
};

// Results are clipped to 0 to 255. Grey is 0.299 R + 0.587 G + 0.114 B, or the only channel.
void ScaleBrightness(float factor, FloatImage* pixels);  // x * factor
void ScaleContrast(float factor, FloatImage* pixels);    // mean grey + (x - mean grey) * factor
void ScaleSaturation(float factor, FloatImage* pixels);  // grey + (x - grey) * factor
void TurnHue(float turn, FloatImage* pixels);            // by `turn` of the circle of HSV's hues

// Adds 255 * sum_k weight_k * eigenvalue_k * eigenvector_k of the colors of ImageNet.
void AddLighting(const double (&weights)[3], FloatImage* pixels);

}  // namespace trainer
