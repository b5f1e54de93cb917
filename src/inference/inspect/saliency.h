#pragma once

#include <span>

#include "trainer/image/image.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Draws the gradient of a score with respect to an image (1, C, H, W), as Simonyan et al. do ("Deep
// inside convolutional networks", 2013): a pixel is as bright as the largest magnitude of its
// channels. The brightest hundredth of the pixels is white, so that a single pixel cannot make all
// others dark. Values that are not finite count as 0.
Image MakeSaliency(std::span<const float> gradient, const Shape& shape);

}  // namespace trainer
