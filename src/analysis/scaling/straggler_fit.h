#pragma once
// How long ranks wait for the slowest of them, and the fit of the model to measured speeds.

#include "scaling/iteration_model.h"

namespace trainer {

// Returns the expected maximum of `count` samples of the standard normal distribution; 0 for one.
double ExpectedMax(int count);

// The measured speed of a run.
struct MeasuredRate {
  int ranks = 0;
  double images_per_second = 0;
};

// A profile that agrees with measured rates; see ScalingOptions::jitter.
struct CalibratedProfile {
  IterationProfile profile;
  double jitter = 0;
};
// Chooses the jitter, and one factor for all times of `profile`, with which the model predicts both
// measured rates. Throws kUsage if no jitter from 0 to 100 % explains the second rate. Returns the
// scaled profile and the jitter.
CalibratedProfile CalibrateStragglers(const IterationProfile& profile, const ClusterModel& cluster,
                                      const ScalingOptions& options, const MeasuredRate& first,
                                      const MeasuredRate& second);

}  // namespace trainer
