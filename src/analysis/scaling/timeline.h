#pragma once
// Draws a predicted iteration in text.

#include <string>

#include "scaling/iteration_model.h"

namespace trainer {

// Returns lines of at most 80 columns: what a rank computes, and when each bucket is ready, waits
// and is sent. If there are more than 20 buckets, the ones in the middle are left out.
std::string RenderTimeline(const IterationProfile& profile, const IterationPrediction& step);

}  // namespace trainer
