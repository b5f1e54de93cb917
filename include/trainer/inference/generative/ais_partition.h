#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "trainer/inference/generative/rbm.h"

namespace trainer {

// An estimate of log Z, where Z is the sum of exp(-energy) over all states of an RBM.
struct PartitionEstimate {
  double log_z = 0;
  double error = 0;          // standard error of log_z
  double low = 0, high = 0;  // log(Z - 3 errors of Z), log(Z + 3 errors of Z)
};

// The size of an estimate. Its error falls with the square root of the chains.
struct AisOptions {
  int chains = 100;
  int steps = 14500;  // intermediate distributions
  uint64_t seed = 1;
  // Called with the number of completed steps after each step but the last. May be empty.
  std::function<void(int done)> progress;
};

// Estimates log Z by annealed importance sampling (Neal, Statistics and Computing 11, 2001;
// Salakhutdinov and Murray, ICML 2008). The base distribution is an RBM without weights, whose
// visible units have the means `base_means` (in host memory, one per visible unit). As in the
// second paper, 1 of 29 steps uses inverse temperatures up to 0.5, 8 up to 0.9 and 20 up to 1.
// Allocates device memory for the chains.
PartitionEstimate EstimatePartitionAis(const Device& device, const RbmModel& rbm,
                                       std::span<const float> base_means,
                                       const AisOptions& options);

}  // namespace trainer
