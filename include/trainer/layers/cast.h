#pragma once

#include <memory>

#include "trainer/layers/layer.h"

namespace trainer {

// Makes a layer that stores its input as `to` (y = x) and casts the gradient back. It is not a type
// of net files: the net inserts it where a layer needs another storage type than its input has.
std::unique_ptr<Layer> MakeCast(DType to);

}  // namespace trainer
