#pragma once
// What GroupNorm and MVN share: the numbers that they sum, and means over groups of channels.

#include "trainer/backend/loops/pixel_sums.h"

namespace trainer {

// What is summed, besides what the layers define.
template <class T>
struct ValueOf {
  const T* x;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(x[at]); }
};
template <class T>
struct ProductOf {
  const T *a, *b;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(a[at]) * Load(b[at]); }
};

template <class T>
struct SquareAround {
  const T* x;
  const float* mean;  // per chunk and channel
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    const float d = Load(x[at]) - mean[stat];
    return d * d;
  }
};

// Sums per item and channel become, in each of a group's neighbouring channels, `by` times the sum
// over the group. One row per group.
struct MeanOfGroup {
  float* sums;
  float by;

  template <class Row>
  HD void operator()(const Row& row) const {
    float* const own = sums + row.index * row.length;
    const float mean = row.Sum([&](int64_t c) { return own[c]; }) * by;
    row.ForEach([&](int64_t c) { own[c] = mean; });
  }
};

}  // namespace trainer
