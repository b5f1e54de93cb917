#pragma once

#include <string>
#include <vector>

#include "trainer/input/transform.h"

namespace trainer {

// A mean image as compute_image_mean writes it.
struct MeanImage {
  std::string path;
  ImageShape shape;
  std::vector<float> values;  // (C, H, W); empty without a mean image
};

// Reads a binaryproto file of shape (1, C, H, W) or (C, H, W). Throws kNoInput, kData.
MeanImage ReadMeanFile(const std::string& path);

// Reads transform_param's mean_file; returns an empty image if it is not set. The path is used as
// written if the file exists, else relative to the layer's file. Throws as ReadMeanFile.
MeanImage ReadMeanImage(const LayerSpec& layer);

}  // namespace trainer
