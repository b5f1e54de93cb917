#pragma once
// Shapes and lists that the prototxt writes once for all tops or once per top.

#include "trainer/layers/layer.h"

namespace trainer {

// The shape written as entry `index` of param.field. Refuses axes below 1.
Shape ShapeOf(const LayerSpec& spec, std::string_view param, std::string_view field,
              const caffe::BlobShape& shape, int index = -1);

// Refuses a list that has neither one entry nor one per top.
void CheckPerTop(const LayerSpec& spec, std::string_view param, std::string_view field, int count);

}  // namespace trainer
