#pragma once
// Sums and group means that GroupNorm and MVN share.

#include "trainer/backend/loops/pixel_sums.h"

namespace trainer {

// Terms of sums over the elements of a channel; the layers define others. The arguments of a term
// are the element's index, its channel, and the index of its chunk and channel. X and C are the
// types with which a functor holds its tensors and its arrays of statistics: see SumChunks.
// Sums x.
template <class T, class X = const T*>
struct ValueOf {
  X x;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(x[at]); }
  template <int V>
  HD auto Read(const Place& p) const {
    return ValueOf<T, Neighbours<T, V>>{LoadVector<V>(x, p.at)};
  }
  uintptr_t Addresses() const { return AddressOf(x); }
};
// Sums a * b.
template <class T, class X = const T*>
struct ProductOf {
  X a, b;
  HD float operator()(int64_t at, int64_t, int64_t) const { return Load(a[at]) * Load(b[at]); }
  template <int V>
  HD auto Read(const Place& p) const {
    return ProductOf<T, Neighbours<T, V>>{LoadVector<V>(a, p.at), LoadVector<V>(b, p.at)};
  }
  uintptr_t Addresses() const { return AddressOf(a) | AddressOf(b); }
};

// Sums (x - mean)^2.
template <class T, class X = const T*, class C = const float*>
struct SquareAround {
  X x;
  C mean;  // per chunk and channel
  HD float operator()(int64_t at, int64_t, int64_t stat) const {
    const float d = Load(x[at]) - mean[stat];
    return d * d;
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return SquareAround<T, Neighbours<T, V>, Neighbours<float, V>>{LoadVector<V>(x, p.at),
                                                                   LoadVector<V>(mean, p.stat)};
  }
  uintptr_t Addresses() const { return AddressOf(x) | AddressOf(mean); }
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
