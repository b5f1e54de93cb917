#pragma once
// Sums and group means that GroupNorm and MVN share.

#include "trainer/backend/loops/pixel_sums.h"

namespace trainer {

// Terms of sums over the elements of a channel; the layers define others. The arguments of a term
// are the element's index, its channel, and the index of its chunk and channel.
// Sums x.
template <class T>
struct ValueOf {
  const T* x;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(x[at]); }
};
// Sums a * b.
template <class T>
struct ProductOf {
  const T *a, *b;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(a[at]) * Load(b[at]); }
};

// Sums (x - mean)^2.
template <class T>
struct SquareAround {
  const T* x;
  const float* mean;  // per chunk and channel
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    const float d = Load(x[at]) - mean[stat];
    return d * d;
  }
};

// Replaces the sums per item and channel of each group by `by` times the sum over the group's
// neighbouring channels. Each group is a row.
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
