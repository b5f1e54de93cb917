#pragma once
// Mixed images and labels (Zhang and others 2018, arXiv:1710.09412).

#include <cstdint>
#include <span>

#include "trainer/base/philox.h"

namespace trainer {

// The share that an image keeps: of a Beta(alpha, alpha) distribution, by the record's number.
double DrawMixShare(const PhiloxKey& key, uint64_t number, double alpha);

// Item i of `images` becomes share_i * item i + (1 - share_i) * the next one, behind the last one
// the first; `numbers` are the records'. `labels` holds `classes` places for each item, of which
// the first is its class, and gets the share of each class. One item alone stays as it is.
void MixItems(const PhiloxKey& key, double alpha, std::span<const uint64_t> numbers, int classes,
              std::span<float> images, std::span<float> labels);

}  // namespace trainer
