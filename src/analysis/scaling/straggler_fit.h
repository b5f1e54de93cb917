#pragma once
// How long ranks wait for the slowest of them, and the fit of the model to measured speeds.

#include "trainer/analysis/scaling/iteration_model.h"

namespace trainer {

// The expected maximum of `count` samples of the standard normal distribution.
double ExpectedMax(int count);

// The measured speed of a run.
struct MeasuredRate {
  int ranks = 0;
  double images_per_second = 0;
};

struct CalibratedProfile {
  IterationProfile profile;
  double jitter = 0;
};
// Chooses the jitter, and one factor for all times of `profile`, with which the model predicts both
// measured rates. Throws kUsage if no jitter of at least 0 explains the second one.
CalibratedProfile CalibrateStragglers(const IterationProfile& profile, const ClusterModel& cluster,
                                      const ScalingOptions& options, const MeasuredRate& first,
                                      const MeasuredRate& second);

}  // namespace trainer
