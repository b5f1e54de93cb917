#pragma once
// How many records the data layers of a solver's training net read.

#include <cstdint>

#include "trainer/config/layer_spec.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// Returns the batch_size of a layer; 0 if it has none.
int64_t BatchSizeOfLayer(const LayerSpec& layer);

// The layer of the training net whose epochs are the epochs of the run.
struct EpochLayer {
  LayerSpec* layer = nullptr;  // null if no layer has epochs
  int64_t records = 0, batch = 0;
};
// Finds the first data layer with epochs. Throws as CountLayerRecords
// (trainer/net/data_layers.h) does.
EpochLayer FindEpochLayer(SolverSpec* spec);

}  // namespace trainer
