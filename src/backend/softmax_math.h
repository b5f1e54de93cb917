#pragma once
// Row functors of a softmax.

#include "trainer/backend/loops/math.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// Sets y_i = exp(x_i - max x) / (the sum over the row) along one row; subtracting the maximum keeps
// exp finite. kContiguous: the elements of a row are neighbours in memory.
template <class T, bool kContiguous>
struct SoftmaxRow {
  const T* x;
  T* y;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = kContiguous ? 1 : rows.inner;
    const float top = row.Max([&](int64_t i) { return Load(x[at + i * step]); });
    const float sum = row.Sum([&](int64_t i) { return Exp(Load(x[at + i * step]) - top); });
    const float scale = 1 / sum;
    row.StoreEach([&](int64_t i) { return Exp(Load(x[at + i * step]) - top) * scale; },
                  [&](int64_t i, float value) { Store(y[at + i * step], value); });
  }
};

// Sets dx_i = y_i * (dy_i - sum_j dy_j * y_j) along one row. kContiguous: the elements of a row are
// neighbours in memory.
template <class T, bool kContiguous>
struct SoftmaxGradientRow {
  const T *y, *dy;
  T* dx;
  Rows rows;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = kContiguous ? 1 : rows.inner;
    const float dot =
        row.Sum([&](int64_t i) { return Load(dy[at + i * step]) * Load(y[at + i * step]); });
    row.StoreEach(
        [&](int64_t i) { return Load(y[at + i * step]) * (Load(dy[at + i * step]) - dot); },
        [&](int64_t i, float value) { Store(dx[at + i * step], value); });
  }
};

}  // namespace trainer
