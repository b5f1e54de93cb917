#pragma once
// Shapes and lists that the prototxt gives once for all tops or once per top.

#include "trainer/layers/layer.h"

namespace trainer {

// Converts `shape`, entry `index` of the repeated field param.field (-1: the field is not
// repeated). Throws kConfig at its line for an axis below 1, too many axes, or a count beyond 64
// bits.
Shape ShapeOf(const LayerSpec& spec, std::string_view param, std::string_view field,
              const caffe::BlobShape& shape, int index = -1);

// Throws kConfig unless `count`, the number of entries of param.field, is 1 or the number of tops.
void CheckPerTop(const LayerSpec& spec, std::string_view param, std::string_view field, int count);

}  // namespace trainer
