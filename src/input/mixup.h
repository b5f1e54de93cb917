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

// Mixes each item with the next one, and the last with the first: see MixedNumber.
void MixItems(std::span<const float> mix_weights, std::span<float> items);

// Converts labels, each the first of `classes` places, to one-hot rows.
void SpreadLabels(int classes, std::span<float> labels);

}  // namespace trainer
