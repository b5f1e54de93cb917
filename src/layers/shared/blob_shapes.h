#pragma once
// Shapes and lists that the prototxt gives once for all tops or once per top.

#include "trainer/layers/layer.h"

namespace trainer {

// Returns the shape written as entry `index` of param.field. Refuses axes below 1.
Shape ShapeOf(const LayerSpec& spec, std::string_view param, std::string_view field,
              const caffe::BlobShape& shape, int index = -1);

// Refuses a list unless it has one entry or one per top.
void CheckPerTop(const LayerSpec& spec, std::string_view param, std::string_view field, int count);

}  // namespace trainer
