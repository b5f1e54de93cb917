#pragma once
// Mixed images and labels (Zhang and others 2018, arXiv:1710.09412).

#include <cstdint>
#include <span>

#include "trainer/base/random/philox.h"

namespace trainer {

// Draws the weight of an image from a Beta(alpha, alpha) distribution, by the record's number.
double DrawMixWeight(const PhiloxKey& key, uint64_t number, double alpha);

// Draws the weights of a batch whose records have these numbers. A single image has the weight 1.
void DrawMixWeights(const PhiloxKey& key, double alpha, std::span<const uint64_t> numbers,
                    std::span<float> mix_weights);

// Replaces item i by MixedNumber(mix_weights[i], item i, item i + 1); the last one is mixed with
// the first.
void MixItems(std::span<const float> mix_weights, std::span<float> items);

// Converts labels to one-hot rows. `labels` has `classes` places for each item, and the first is
// its class.
void SpreadLabels(int classes, std::span<float> labels);

}  // namespace trainer
