#pragma once
// What other Caffes tell their own kernels and machines, and what their words mean here.

#include <vector>

#include "trainer/config/net_spec.h"

namespace trainer {

// Logs which hints of Intel Caffe a net holds that have no effect (engine, quantization_param,
// bn_stats_batch_size, multinode and its like): one line per kind, at the first place.
void LogHints(const NetSpec& net);

// Rewrites the `filler` of a BatchNorm, Intel Caffe's word for the start of a learned factor. Where
// the first layer that reads its output is a Scale, that Caffe runs both as one: the Scale gets it.
// Otherwise it becomes scale_filler. Throws kConfig where both are given.
void MoveBatchNormFillers(std::vector<LayerSpec>* layers, Upgrades* upgrades);

}  // namespace trainer
