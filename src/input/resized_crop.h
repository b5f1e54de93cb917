#pragma once
// Parts of random area and shape, as random_resized_crop_param asks for.

#include "record_rng.h"
#include "trainer/config/layer_spec.h"
#include "trainer/image/image.h"

namespace trainer {

// Draws a part of a picture with the distribution of torchvision's RandomResizedCrop: a share of
// the area, uniform; width by height, uniform in its logarithm; ten attempts until it fits, at a
// uniform place; then the middle, as large as the shapes allow. Source: Szegedy and others 2014
// (arXiv:1409.4842), section 6.
Rect DrawResizedCrop(int height, int width, const caffe::RandomResizedCropParameter& param,
                     RecordRng* draws);

}  // namespace trainer
