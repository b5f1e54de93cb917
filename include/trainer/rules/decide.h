#pragma once
// The words of an update in the device's memory: what the host says of it, and what all gradients
// together say, found on the device: no number comes to the host before the update is queued.

#include "trainer/rules/rule.h"

namespace trainer {

// By parameter of [first, last): the sums of the squares of its gradient and of its weights.
void SumSquares(const Device& device, const TensorList& parameters, int first, int last,
                float* grad_squares, float* weight_squares);

// Queues *words = rates, but for what the rule makes of them.
void WriteRates(const Device& device, const RateWords& rates, RateWords* words);

struct DecideRules {
  float clip = -1;  // the largest norm of the mean gradient over the replicas; negative: any
  float replicas = 1;
  bool scaled = false;     // gradients are multiplied by words->loss_scale
  bool fixed = false;      // that factor never changes
  uint32_t window = 2000;  // good updates after which it is doubled
};

// A factor is halved no further than to the first and doubled no further than to the second: the
// smallest number of f16 is 2^-24.
inline constexpr float kLeastLossScale = 1.0f / (1 << 24), kMostLossScale = 1 << 24;

// Sets *words, on the device, from *squares, the sum of the squares of all gradients. An update is
// skipped where that is not finite, in scaled gradients alone: the factor is then halved. A norm
// that is not a number clips nothing, as in Caffe.
void Decide(const Device& device, const float* squares, const DecideRules& rules,
            UpdateWords* words);

}  // namespace trainer
