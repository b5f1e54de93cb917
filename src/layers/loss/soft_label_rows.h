#pragma once
// Cross entropy between softmax and a distribution over the classes, which has a share for each
// score.

#include <cmath>

#include "shared/class_labels.h"
#include "shared/softmax_rows.h"

namespace trainer {

// Smooths a share t of a row: label smoothing distributes the fraction `smoothing` equally over all
// classes.
struct SmoothShare {
  float smoothing;
  // Returns (1 - smoothing) * t + smoothing / K for K classes, the length of the row.
  template <class Row>
  HD float Of(const Row& row, float t) const {
    return (1 - smoothing) * t + smoothing / static_cast<float>(row.length);
  }
};

// How far the sum of a row's shares may be from 1: shares stored as bytes or as 16-bit floats pass.
inline constexpr float kShareTolerance = 0.01f;

// Computes one row: probabilities p, and the loss -sum_c t_c log p_c for smoothed shares t. Caffe's
// lower bound of a probability limits the loss to `most` times the sum of the shares. Reports a row
// whose shares do not sum to 1, with their sum; a share below 0 or NaN makes that infinite.
struct ShareLossRow {
  const float *x, *share;
  float *prob, *loss;
  Rows rows;
  SmoothShare smooth;
  float most;  // largest loss of a row whose shares sum to 1
  InputErrorFlag fault;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const RowSoftmax softmax = RowSoftmax::Write(row, x + at, prob + at, step);
    const float top = softmax.top;
    const float sum = row.Sum([&](int64_t i) {
      const float t = share[at + i * step];
      return t >= 0 ? t : INFINITY;
    });
    const float all = (1 - smooth.smoothing) * sum + smooth.smoothing;
    const float own = row.Sum(
        [&](int64_t i) { return smooth.Of(row, share[at + i * step]) * (x[at + i * step] - top); });
    row.Once([&] {
      if (!(fabsf(sum - 1) <= kShareTolerance)) fault.Report(row.index, sum);
      const float nll = all * logf(softmax.sum) - own;
      loss[row.index] = nll > all * most ? all * most : nll;
    });
  }
};

// dx = (p * the sum of the shares - t) * weight / normalizer.
struct ShareGradientRow {
  const float *prob, *share, *weight, *normalizer;
  float* dx;
  Rows rows;
  SmoothShare smooth;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t at = rows.Start(row.index), step = rows.inner;
    const float scale = *weight / *normalizer;
    const float all = row.Sum([&](int64_t i) { return smooth.Of(row, share[at + i * step]); });
    row.ForEach([&](int64_t i) {
      const int64_t k = at + i * step;
      dx[k] = (all * prob[k] - smooth.Of(row, share[k])) * scale;
    });
  }
};

}  // namespace trainer
