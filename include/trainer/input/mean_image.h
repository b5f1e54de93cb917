#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;
  int64_t Count() const { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
  std::string ToString() const;  // "3x227x227"
};

// A mean image as compute_image_mean writes it.
struct MeanImage {
  std::string path;
  ImageShape shape;
  std::vector<float> values;  // (C, H, W); empty without a mean image
};

// Reads a binaryproto file of shape (1, C, H, W) or (C, H, W). Throws kNoInput, kData.
MeanImage ReadMeanFile(const std::string& path);

// Reads transform_param's mean_file, relative as named files are; empty if it is not set.
MeanImage ReadMeanImage(const LayerSpec& layer);

}  // namespace trainer
