#pragma once
// Fields that only other versions of Caffe use, for their own kernels and machines, and their
// meaning here.

#include <vector>

#include "trainer/config/net_spec.h"

namespace trainer {

// Logs the hints of other versions of Caffe in a net that have no effect (engine,
// quantization_param, bn_stats_batch_size, multinode and the like): one line per kind, with the
// first place.
void LogHints(const NetSpec& net);

// Rewrites the `filler` of a BatchNorm, with which Intel Caffe initialises a learned factor. If the
// first layer that reads its output is a Scale, Intel Caffe runs both as one layer, so the Scale
// gets the filler, and bias_filler too. Otherwise, and if the BatchNorm has scale_bias, it becomes
// scale_filler. Throws kConfig if filler and scale_filler are both given.
void MoveBatchNormFillers(std::vector<LayerSpec>* layers, Upgrades* upgrades);

}  // namespace trainer
