#pragma once
// An iteration of several ranks as a drawing of text.

#include <string>

#include "trainer/scaling/step.h"

namespace trainer {

// Lines of at most 80 columns: what a rank computes, and for each bucket when it is ready, waits
// and is sent.
std::string DrawTimeLine(const StepWork& work, const StepPrediction& step);

}  // namespace trainer
