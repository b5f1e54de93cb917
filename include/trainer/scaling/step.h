#pragma once
// One training iteration of several ranks, played event by event.

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/scaling/cluster.h"

namespace trainer {

// Gradients that become final together.
struct SliceTime {
  std::string layer;
  double bytes = 0;
  double ready = 0;  // seconds after backward began
};

// What a rank computes in an iteration, alone.
struct StepWork {
  double forward = 0, backward = 0, update = 0;  // seconds
  std::vector<SliceTime> slices;                 // in the order in which they are ready
  double images = 0;                             // that a rank sees in an iteration

  double Seconds() const { return forward + backward + update; }
  double GradientBytes() const;
};
// The same, every time multiplied.
StepWork Scaled(const StepWork& work, double factor);

// Slices that are summed at once.
struct BucketTime {
  int first = 0, last = 0;  // slices
  double bytes = 0;
  double ready = 0, begin = 0, end = 0;  // seconds after the iteration began
};

enum class Limit {
  kCompute,    // the exchange costs less than a tenth
  kStraggler,  // waiting for the slowest rank
  kLatency,    // of sums that are too small for the link
  kBandwidth,  // the bytes take longer than backward
  kExposed,    // backward would hide the bytes, but they come too late
};
const char* NameOf(Limit limit);

struct StepPrediction {
  double seconds = 0;   // of an iteration
  double compute = 0;   // of one rank's work
  double waiting = 0;   // for the slowest rank
  double exposed = 0;   // the rest: the exchange, as far as nothing hides it
  double backward = 0;  // when backward begins
  double end = 0;       // when it ends
  std::vector<BucketTime> buckets;
  Limit limit = Limit::kCompute;
};

struct StepOptions {
  size_t bucket_bytes = 0;  // 0: as a run chooses it
  // Standard deviation of a rank's time for an iteration, as a part of it. All wait for the
  // slowest, which of N normally distributed times is above the mean by jitter * ExpectedMax(N).
  double jitter = 0;
};

// Slices are joined to buckets as Exchange does it. Between machines buckets are sent one after the
// other while backward goes on; within one machine the thread that computes sums them. The loss is
// summed behind them, then comes the update, then the wishes of signals.
StepPrediction PredictStep(const StepWork& work, const Cluster& cluster,
                           const StepOptions& options = {});

// The mean of the greatest of `count` numbers of the standard normal distribution.
double ExpectedMax(int count);

// What was measured of a whole run.
struct MeasuredRate {
  int ranks = 0;
  double images_per_second = 0;
};
// Chooses a factor for all times of `work`, and a jitter, for which the predicted rates are the two
// measured ones. Throws kUsage where no jitter of at least 0 gives the second one.
struct FittedWork {
  StepWork work;
  double jitter = 0;
};
FittedWork FitWork(const StepWork& work, const Cluster& cluster, const StepOptions& options,
                   const MeasuredRate& first, const MeasuredRate& second);

}  // namespace trainer
