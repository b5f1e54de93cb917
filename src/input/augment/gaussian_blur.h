#pragma once

#include "trainer/input/augment.h"

namespace trainer {

// Blurs an image with a Gaussian kernel of this side, an odd number. The image is mirrored at its
// borders, so each side must be longer than half the kernel. The result is within one level of
// torchvision's, and does not depend on the processor: weights are whole numbers whose sum is 2^16.
void GaussianBlur(int kernel_size, double sigma, const PixelSpan& part);

}  // namespace trainer
