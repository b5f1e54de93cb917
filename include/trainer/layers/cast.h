#pragma once

#include <memory>

#include "trainer/layers/layer.h"

namespace trainer {

// y = x, stored as `to`. No type of net files: the net puts it in where a layer takes another
// storage type than its input has. The gradient is cast back.
std::unique_ptr<Layer> MakeCast(DType to);

}  // namespace trainer
