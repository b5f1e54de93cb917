#pragma once

#include <string>
#include <vector>

#include "trainer/data/transform.h"

namespace trainer {

// What transform_param's mean_file holds; empty without one.
struct MeanImage {
  std::string path;
  ImageShape shape;
  std::vector<float> values;  // (C, H, W)
};

// Looks for the file as written, else relative to the layer's file. Throws kNoInput, kData.
MeanImage ReadMeanImage(const LayerSpec& layer);

}  // namespace trainer
