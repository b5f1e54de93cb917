#pragma once
// An update kernel reads two structs in the device's memory: DeviceHyperparams, which the host
// writes, and GradientVerdict, which another kernel computes from all gradients. The host therefore
// queues the update without waiting for a result of the device.

#include "update_rule.h"

namespace trainer {

// Enqueues *to = hyper, except rule_terms, which the rule computes itself.
void WriteHyperparams(const Device& device, const DeviceHyperparams& hyper, DeviceHyperparams* to);

// How Decide computes a verdict.
struct VerdictRules {
  float clip = -1;  // largest norm of the gradient's mean over the ranks; negative: no limit
  float ranks = 1;
  bool scaled = false;     // gradients are multiplied by the loss scale
  bool fixed = false;      // the loss scale never changes
  uint32_t window = 2000;  // updates in a row without a skip, after which the scale is doubled
};

// The range of a loss scale. The smallest number of f16 is 2^-24.
inline constexpr float kMinLossScale = 1.0f / (1 << 24), kMaxLossScale = 1 << 24;

// Sets *verdict, on the device, from *squares, the sum of the squares of all gradients. If
// gradients are scaled and that sum is not finite, the update is skipped and the loss scale is
// halved. A NaN norm does not clip, as in Caffe.
void Decide(const Device& device, const float* squares, const VerdictRules& rules,
            GradientVerdict* verdict);

}  // namespace trainer
