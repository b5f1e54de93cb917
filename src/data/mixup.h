#pragma once
// Mixed images and labels (Zhang and others 2018, arXiv:1710.09412).

#include <cstdint>
#include <span>

#include "trainer/base/random/philox.h"

namespace trainer {

// The share that an image keeps: of a Beta(alpha, alpha) distribution, by the record's number.
double DrawMixShare(const PhiloxKey& key, uint64_t number, double alpha);

// Those of a batch whose records have these numbers. An image alone keeps all of itself.
void DrawMixShares(const PhiloxKey& key, double alpha, std::span<const uint64_t> numbers,
                   std::span<float> shares);

// Item i becomes MixedNumber(shares[i], item i, item i + 1), behind the last one the first.
void MixItems(std::span<const float> shares, std::span<float> items);

// `labels` holds `classes` places for each item, of which the first is its class: 1 in the place of
// the class, 0 in the others.
void SpreadLabels(int classes, std::span<float> labels);

}  // namespace trainer
