#pragma once
// Searches the learning rate of a run by a range test on all its ranks.

#include <functional>
#include <string>

#include "trainer/run/search/lr_range_test.h"
#include "trainer/run/training_run.h"

namespace trainer {

// Returns the range of --from, --to and --iterations. Throws kUsage unless the learning rates are
// numbers above 0 that rise.
LrRange ParseLrRange(const std::string& from, const std::string& to, int iterations);

// Trains as the run of `request` would, without tests and snapshots, on a learning rate that grows
// through the range. Starts or joins the ranks; rank 0 calls `report`. Returns the exit
// code. Throws kUsage for requests that make no sense here: --batch=auto and --scale_lr.
int FindLearningRate(const TrainRequest& request, const LrRange& range,
                     const std::function<void(const LrRangeResult&)>& report);

}  // namespace trainer
