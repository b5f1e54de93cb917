#pragma once
// Moments over the batches of all replicas.

#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/layers/all_reduce.h"

namespace trainer {

// Used by one thread. Sums are made on the host, where the numbers of a device go for that.
class AllReducedMoments {
 public:
  void Use(const AllReduceFn& replicas) { replicas_ = replicas; }
  // The channels, before the first pass; the calls below allocate nothing.
  void Plan(int64_t channels) { host_.resize(3 * static_cast<size_t>(channels)); }

  int count() const { return replicas_.count; }

  // `mean` and `variance` (C), on the device, of this replica's batch become those of all replicas'
  // batches together, which are equally large. Exact where means are far from 0: what is summed is
  // the distance from a mean that all know.
  // Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  // variances" (1979).
  void Join(const Device& device, float* mean, float* variance);

  // `values`, on the device, at most 2 C, become their means over the replicas.
  void Mean(const Device& device, float* values, int64_t count);

 private:
  AllReduceFn replicas_;
  std::vector<float> host_;  // means, variances, the means that all know
};

}  // namespace trainer
