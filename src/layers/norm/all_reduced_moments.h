#pragma once
// Moments over the batches of all replicas.

#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/layers/all_reduce.h"

namespace trainer {

// Used by one thread. The host computes the sums, so a device's numbers are copied there and back.
class AllReducedMoments {
 public:
  // Sets the replicas; without this call, the moments are this replica's own.
  void Use(const AllReduceFn& replicas) { replicas_ = replicas; }
  // Sets the number of channels. Call it before the first pass; the calls below allocate nothing.
  void Plan(int64_t channels) { host_.resize(3 * static_cast<size_t>(channels)); }

  int count() const { return replicas_.count; }

  // Replaces `mean` and `variance` (C), on the device, of this replica's batch by the moments of
  // all replicas' batches together. All batches must have the same size. The result is accurate for
  // means far from 0 because each replica sums distances from a mean that all replicas know.
  // Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  // variances" (1979).
  void Join(const Device& device, float* mean, float* variance);

  // Replaces `values`, on the device, at most 2 C, by their means over the replicas.
  void Mean(const Device& device, float* values, int64_t count);

 private:
  AllReduceFn replicas_;
  std::vector<float> host_;  // means, variances, the means that all replicas know
};

}  // namespace trainer
