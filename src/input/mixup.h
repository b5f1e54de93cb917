#pragma once
// Mixed images and labels: mixup (Zhang and others 2018, arXiv:1710.09412) and CutMix (Yun and
// others 2019, arXiv:1905.04899).

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/input/normalize.h"

namespace trainer {

// Draws the weight of an image from a Beta(alpha, alpha) distribution, by the record's number.
double DrawMixWeight(const PhiloxKey& key, uint64_t number, double alpha);

// The parameters of the Beta distributions of mixup and CutMix, 0: none; and the probability of
// CutMix if there are both.
struct MixOptions {
  double mixup = 0, cutmix = 0, switch_prob = 0.5;
};

// How an image is mixed with the next one: all pixels by a weight, or by pasting a box of the next.
struct ImageMix {
  float pixel_weight = 1, label_weight = 1;
  CutBox box;
};

// Draws how the images of a batch, height x width pixels each, are mixed, by the numbers of their
// records. A single image stays as it is.
std::vector<ImageMix> DrawMixes(const PhiloxKey& key, const MixOptions& options,
                                std::span<const uint64_t> numbers, int64_t height, int64_t width);

// Returns the box of CutMix about a pixel: a share `cut` of the image's area, less what is outside.
CutBox BoxAround(double cut, int64_t row, int64_t column, int64_t height, int64_t width);

// Mixes each item with the next one, and the last with the first: see MixedNumber.
void MixItems(std::span<const float> mix_weights, std::span<float> items);

// Mixes each image (H, W, C) of a batch with the next one as MixItems does. Afterwards, the box of
// each image has the next image's pixels.
void MixImages(std::span<const float> mix_weights, std::span<const CutBox> boxes, int64_t width,
               int64_t channels, std::span<float> images);

// Converts labels, each the first of `classes` places, to one-hot rows.
void SpreadLabels(int classes, std::span<float> labels);

}  // namespace trainer
