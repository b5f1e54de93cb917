#pragma once

#include <cstdint>

#include "trainer/backend/loops/math.h"
#include "trainer/layers/layer.h"

namespace trainer {

// Computes the softmax of a row for a loss: p_i = exp(x_i - top) / sum, where top is the largest
// x_i. The elements have the stride `step`.
struct RowSoftmax {
  float top, sum;

  template <class Row>
  HD static RowSoftmax Write(const Row& row, const float* x, float* p, int64_t step) {
    const float top = row.Max([&](int64_t i) { return x[i * step]; });
    const float sum = row.Sum([&](int64_t i) { return Exp(x[i * step] - top); });
    const float scale = 1 / sum;
    row.StoreEach([&](int64_t i) { return Exp(x[i * step] - top) * scale; },
                  [&](int64_t i, float value) { p[i * step] = value; });
    return {top, sum};
  }
};

// Throws kConfig if a gradient arrives at the probabilities, the second top of such a loss.
inline void RefuseProbabilityGradient(const RunContext& run, const LayerSpec& spec) {
  if (run.NumOutputs() < 2 || !run.HasGradOutput(1)) return;
  spec.Fail(
      "the probabilities (second top) have no gradient; to train on them, use a separate Softmax "
      "layer; write loss_weight: 0 for the second top");
}

}  // namespace trainer
