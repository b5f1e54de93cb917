#include "gradient_stats.h"

#include <cmath>

#include "trainer/backend/loops/multi_tensor.h"
#include "trainer/backend/loops/reduce.h"

namespace trainer {
namespace {

// Returns the square of element i.
struct Square {
  const float* x;
  HD float operator()(int64_t i) const { return x[i] * x[i]; }
};

// Returns the functor for one array of a parameter: its weights or its gradient.
template <int kArray>
struct SquaresOf {
  HD Square operator()(const TensorTuple& parameter) const { return {parameter.array[kArray]}; }
};
constexpr int kWeights = 0, kGradients = 1;

}  // namespace

void SumOfSquares(const Device& device, std::span<const float> values, float* sum) {
  ReduceSum(device, static_cast<int64_t>(values.size()), Square{values.data()}, 1, sum);
}

void SumSquaresPerParam(const Device& device, const TensorList& parameters, int first, int last,
                        float* grad_squares, float* weight_squares) {
  MultiTensorReduce(device, parameters, first, last, {grad_squares, weight_squares},
                    SquaresOf<kGradients>(), SquaresOf<kWeights>());
}

float L2Norm(const Device& device, std::span<const float> values, float* scratch) {
  SumOfSquares(device, values, scratch);
  float sum = 0;
  device.CopyToHost(&sum, scratch, sizeof(sum));
  return std::sqrt(sum);
}

}  // namespace trainer
