#include "trainer/optim/gradient_stats.h"

#include <cmath>

#include "trainer/backend/loops/reduce.h"

namespace trainer {
namespace {

// Returns the square of element i.
struct SquareForNorm {
  const float* x;
  HD float operator()(int64_t i) const { return x[i] * x[i]; }
};

}  // namespace

void SumOfSquares(const Device& device, std::span<const float> values, float* sum) {
  ReduceSum(device, static_cast<int64_t>(values.size()), SquareForNorm{values.data()}, 1, sum);
}

float L2Norm(const Device& device, std::span<const float> values, float* scratch) {
  SumOfSquares(device, values, scratch);
  float sum = 0;
  device.CopyToHost(&sum, scratch, sizeof(sum));
  return std::sqrt(sum);
}

}  // namespace trainer
