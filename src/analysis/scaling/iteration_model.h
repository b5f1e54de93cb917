#pragma once
// Predicts the time of a training iteration on several ranks by simulating its events.

#include <cstddef>
#include <vector>

#include "scaling/iteration_profile.h"
#include "trainer/analysis/scaling/cluster_model.h"

namespace trainer {

// A bucket of gradients that ranks sum in one all-reduce. Times in seconds after the iteration
// began.
struct BucketTiming {
  int first = 0, last = 0;  // indices into IterationProfile::gradients
  double bytes = 0;
  double ready = 0, begin = 0, end = 0;
};

// The limit of an iteration's speed on several ranks.
enum class Bottleneck {
  kCompute,    // the exchange costs less than a tenth of the iteration
  kStraggler,  // waiting for the slowest rank
  kLatency,    // the sums are too small for the link
  kBandwidth,  // sending the gradients takes longer than backward
  kExposed,    // backward is long enough to hide the exchange, but the gradients are ready too late
};
// Returns a short name for tables, such as "bandwidth".
const char* NameOf(Bottleneck bottleneck);

// All times in seconds.
struct IterationPrediction {
  double seconds = 0;   // the iteration
  double compute = 0;   // one rank's work
  double waiting = 0;   // waiting for the slowest rank
  double exposed = 0;   // the part of the exchange that no computation hides
  double backward = 0;  // when backward begins
  double end = 0;       // when backward ends
  std::vector<BucketTiming> buckets;
  Bottleneck bottleneck = Bottleneck::kCompute;
};

// How ranks exchange gradients, and how much their times vary.
struct ScalingOptions {
  size_t bucket_bytes = 0;  // 0: the bucket size that a run chooses by itself
  // Standard deviation of a rank's iteration time, as a fraction of it. All ranks wait for the
  // slowest; of N normally distributed times it exceeds the mean by jitter * ExpectedMax(N).
  double jitter = 0;
};

// Simulates one iteration, in which all ranks take the times of the slowest one. Gradients are
// grouped into buckets as in training. Between machines the buckets are sent one after the other
// while backward computes; within a machine, the computing thread sums them itself. After them come
// the sum of the loss, the update, and the sum of the requests of signals. A single rank exchanges
// nothing.
IterationPrediction PredictIteration(const IterationProfile& profile, const ClusterModel& cluster,
                                     const ScalingOptions& options = {});

}  // namespace trainer
